"""Node copying as a transform of PyTorch Geometric."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from nodecopy._core.arrays import Floats, IntArray, Ints, Rows, freeze
from nodecopy._core.checks import check_text, type_name
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import mute_data_warnings
from nodecopy._core.random import Rng, child, seed_sequence
from nodecopy.copying.distributions import DonorDistribution, DonorLists, DonorRows
from nodecopy.copying.donors import DonorRule, fit_rule, group_labels, restrict_rule
from nodecopy.copying.model import EdgeTrackingSampler, NodeCopying, warn_of_unlabelled_nodes
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io import from_pyg
from nodecopy.io.pyg import read_classes, read_mask, to_numpy

torch: Any = import_optional("torch", "NodeCopy")
get_worker_info = torch.utils.data.get_worker_info
Data: Any = import_optional("torch_geometric.data", "NodeCopy").Data
Transform: Any = import_optional("torch_geometric.transforms", "NodeCopy").BaseTransform
WEIGHT_ATTRIBUTES = ("edge_weight", "edge_attr")
MAIN_PROCESS_SEED, WORKERS_SEED = range(2)  # children of the seed of NodeCopy
FITTED_ATTRIBUTES = ("edge_index", "x", "batch", *WEIGHT_ATTRIBUTES)


class NodeCopy(Transform):  # type: ignore[misc]
    """Replace a graph by a sample in which every node has the neighbours of its donor.

    Use it in ``Compose``, as ``transform=`` of a dataset (not as ``pre_transform=``, which would draw one
    sample only) or in the training loop, on single graphs or on a ``Batch``, in which the donors of a node
    come from its own graph. Node attributes are kept, and an edge has the attributes of the edge it was
    copied from. Samples are computed on the CPU and returned on the device of the data.

    Parameters
    ----------
    donors
        Donor rule, such as :class:`.NearestNeighbours` (by ``x``), :class:`.Jaccard` (by edges) or
        :class:`.SameLabel`.
    keep, symmetrise
        As in :class:`.NodeCopying`.
    labels, mask
        Attributes of the data with the classes of nodes and a mask of the nodes whose classes may be used;
        others keep their neighbours. For predicted classes set ``labels="predicted", mask=None``.
    directed
        Whether the graph is directed; by default ``not data.is_undirected()``.
    rng
        Seed of the sequence of samples. A worker of a ``DataLoader`` also uses the seed of the loader, so
        that workers and epochs differ and ``torch.manual_seed`` makes them reproducible.

    Examples
    --------
    >>> from nodecopy import NearestNeighbours, datasets, to_pyg
    >>> digits = to_pyg(datasets.load("digits").subgraph(range(200)))
    >>> augment = NodeCopy(NearestNeighbours(5), keep=0.5, rng=0)
    >>> augment(digits).edge_index.shape != augment(digits).edge_index.shape
    True
    """

    def __init__(
        self,
        donors: DonorRule | str,
        keep: float = 0.0,
        symmetrise: str = "one-endpoint",
        *,
        labels: str = "y",
        mask: str | None = "train_mask",
        directed: bool | None = None,
        rng: Rng = None,
    ) -> None:
        self.donors, self.keep, self.symmetrise = donors, keep, symmetrise
        self.labels, self.mask, self.directed = labels, mask, directed
        self.seed, self.n_calls = seed_sequence(rng), 0
        self._has_warned = False
        self._last: tuple[list[Any], EdgeTrackingSampler] | None = None

    def forward(self, data: Any) -> Any:
        """Return a sample of ``data``; calling the transform leaves the data of the caller unchanged."""
        if not isinstance(data, Data) or data.edge_index is None:
            raise InputError("data of NodeCopy", f"must be a Data with an edge_index; got {type_name(data)}.")
        sampler = self._get_sampler(data)
        first, second, origin = sampler.sample(rng=self._next_seed())
        device = data.edge_index.device
        origins = torch.from_numpy(origin).to(device)
        keys = [key for key, _ in data if data.is_edge_attr(key)]
        for key in keys:
            if key != "edge_index":
                data[key] = data[key][origins]
        data.edge_index = torch.from_numpy(np.stack([first, second]).astype(np.int64)).to(device)
        _update_slices(data, keys)
        return data

    def _next_seed(self) -> Any:
        worker = get_worker_info()
        numbers = (MAIN_PROCESS_SEED,) if worker is None else (WORKERS_SEED, worker.seed)
        self.n_calls += 1
        return child(self.seed, *numbers, self.n_calls - 1)

    def _get_sampler(self, data: Any) -> EdgeTrackingSampler:
        check_text(self.labels, "labels of NodeCopy")
        if self.mask is not None:
            check_text(self.mask, "mask of NodeCopy")
        names = (*FITTED_ATTRIBUTES, self.labels, self.mask or self.labels)
        inputs = [getattr(data, name, None) for name in names]
        state = [(tensor, getattr(tensor, "_version", 0)) for tensor in inputs]
        if self._last is None or any(
            tensor is not last or version != last_version
            for (tensor, version), (last, last_version) in zip(state, self._last[0], strict=True)
        ):
            self._last = state, self._fit(data)
        return self._last[1]

    def _fit(self, data: Any) -> EdgeTrackingSampler:
        directed = True if self.directed is None and not data.is_undirected() else self.directed
        plain = data.__class__(edge_index=data.edge_index, x=data.x, num_nodes=data.num_nodes)
        weights = plain.edge_weight = _weights(data)
        plain.y = self._visible_labels(data)
        graph, sizes = from_pyg(plain, directed=directed), _graph_sizes(data)
        donors = self.donors if sizes is None else _WithinGraphs(self.donors, sizes)
        with mute_data_warnings():  # the batches of a training loop would warn at every step
            model = NodeCopying(donors, self.keep, self.symmetrise).fit(graph)
        self._has_warned = self._has_warned or warn_of_unlabelled_nodes(donors, graph)
        first, second = data.edge_index.cpu().numpy()
        values = np.ones(len(first)) if weights is None else to_numpy(weights)
        return EdgeTrackingSampler(model, first, second, values)

    def _visible_labels(self, data: Any) -> Any:
        """Return the classes of nodes in the mask and -1 elsewhere; ``None`` for classes of graphs."""
        labels: Any = getattr(data, self.labels, None)
        if not _is_real(labels):
            return None
        values = np.nan_to_num(read_classes(to_numpy(labels)), nan=-1)
        codes = values.reshape(-1).astype(np.int64)
        if codes.size != data.num_nodes or (codes != values.reshape(-1)).any():
            return None
        if self.mask is not None and getattr(data, self.mask, None) is not None:
            codes[~read_mask(data, self.mask)] = -1
        return torch.from_numpy(codes)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": None}

    def __repr__(self) -> str:
        return f"NodeCopy({self.donors!r}, keep={self.keep!r}, symmetrise={self.symmetrise!r})"


class _WithinGraphs(DonorDistribution):
    """A donor rule, and its distribution, in which each graph of a batch is fitted alone."""

    def __init__(self, donors: Any, sizes: Ints) -> None:
        ends = np.cumsum(sizes).tolist()
        self.donors, self.sizes, self.n_nodes = donors, sizes, ends[-1]
        self.graphs = [slice(*bound) for bound in pairwise([0, *ends])]

    def fit(self, data: Any) -> DonorDistribution:
        rows, graph_of = data.rows, np.repeat(np.arange(len(self.sizes)), self.sizes)
        crosses = graph_of[rows.row_numbers] != graph_of[rows.indices]
        if crosses.any():
            first, second = rows.row_numbers[crosses][0], rows.indices[crosses][0]
            raise InputError(f"graphs of a batch must have no edge to others; got ({first}, {second}).")
        rules = [restrict_rule(self.donors, nodes, data.n_nodes) for nodes in self.graphs]
        self.parts = [
            fit_rule(rule, _take_graph(data, nodes), "donors of NodeCopy")
            for rule, nodes in zip(rules, self.graphs, strict=True)
        ]
        if not all(isinstance(part, DonorLists) for part in self.parts):
            self.parts = [
                part if isinstance(part, DonorRows) else DonorRows.from_similarity(part.probabilities())
                for part in self.parts
            ]
        return self

    def group_labels(self, data: Any) -> Any:
        return group_labels(self.donors, data)

    def draw(self, uniforms: Floats, keep: float, *, compiled: bool = False) -> IntArray:
        parts = zip(self.parts, self.graphs, strict=True)
        return np.concatenate([part.draw(uniforms[nodes], keep) + nodes.start for part, nodes in parts])

    def mean_rows(self, matrix: Any) -> Any:
        raise NotImplementedError  # NodeCopy computes no expectations

    def match_probabilities(self, group_of: IntArray, wanted: IntArray) -> Any:
        raise NotImplementedError


def _take_graph(graph: Graph, nodes: slice) -> Graph:
    """Return the graph on some nodes without edges to others, without the checks of ``subgraph``."""
    rows, start, end = graph.rows, nodes.start, nodes.stop
    entries = slice(rows.indptr[start], rows.indptr[end])
    weights = None if rows.weights is None else rows.weights[entries]
    indptr = rows.indptr[start : end + 1] - rows.indptr[start]
    parts = {name: vars(graph)[name] for name in ("features", "label_codes")}
    return graph._with(
        rows=Rows.canonical(indptr, rows.indices[entries] - start, weights, end - start),
        **{name: None if part is None else freeze(part[nodes]) for name, part in parts.items()},
    )


def _weights(data: Any) -> Any:
    for name in WEIGHT_ATTRIBUTES:
        values: Any = getattr(data, name, None)
        if _is_real(values) and values.numel() == data.edge_index.shape[1] and (values >= 0).all():
            return values.reshape(-1)
    return None


def _is_real(values: Any) -> bool:
    return torch.is_tensor(values) and not values.is_complex()


def _graph_sizes(data: Any) -> Ints | None:
    batch = getattr(data, "batch", None)
    if batch is None or not len(batch):
        return None
    numbers = to_numpy(batch)
    if numbers.shape != (data.num_nodes,) or (np.diff(numbers) < 0).any():
        raise InputError("data.batch must hold the number of each node's graph, in ascending order.")
    sizes = np.bincount(numbers)
    return sizes if np.count_nonzero(sizes) > 1 else None


def _update_slices(data: Any, keys: list[str]) -> None:
    slices = getattr(data, "_slice_dict", None)
    if slices is None:
        return
    counts = torch.bincount(data.batch[data.edge_index[0]], minlength=data.num_graphs).cpu()
    ends = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    data._slice_dict = {key: ends if key in keys else values for key, values in slices.items()}
