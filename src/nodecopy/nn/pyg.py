"""Node copying as a transform of PyTorch Geometric."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.checks import check_finite, check_text, check_type, type_name
from nodecopy._core.imports import OptionalModule, import_optional
from nodecopy._core.messages import mute_data_warnings
from nodecopy._core.random import N_ROUNDS, PARITY, ROTATIONS, Key, Rng, child, sample_key, seed_sequence
from nodecopy.copying.distributions import DonorDistribution, DonorLists, DonorRows
from nodecopy.copying.donors import DonorRule, reads_edges
from nodecopy.copying.graph_batches import WithinGraphs
from nodecopy.copying.model import EdgeTrackingSampler, NodeCopying, warn_of_unlabelled_nodes
from nodecopy.errors import InputError
from nodecopy.graph import Graph
from nodecopy.io import from_pyg
from nodecopy.io.library_graphs import to_numpy

# Node copying with torch operations, where the edges already lie on a GPU.


torch: Any = OptionalModule("torch", "copying on a device")
WORD = 2**32 - 1


class DeviceSampler:
    """Sample edges on the device of the observed ones, which are not copied to the CPU.

    Parameters
    ----------
    distribution
        The fitted donor distribution; its tables are copied to the device once.
    edge_index, weights
        Tensors ``[2, n_edges]`` and ``[n_edges]`` (or ``None``) on the device. Of parallel edges the heaviest
        is kept; ties go to the last one.
    keep
        Probability that a node keeps its own neighbours.
    rule
        How copied rows become symmetric, ``None`` for directed graphs.

    Examples
    --------
    >>> import torch
    >>> from nodecopy import Graph, SameLabel
    >>> distribution = SameLabel([0, 0, 1]).fit(Graph([[0, 1, 0], [0, 0, 1], [0, 0, 0]], directed=True))
    >>> sampler = DeviceSampler(distribution, torch.tensor([[0, 1], [1, 2]]), None, keep=0.0, rule=None)
    >>> [part.tolist() for part in sampler.sample(SeedSequence(0))]
    [[[0, 1], [2, 2]], [1, 1]]
    """

    def __init__(
        self, distribution: DonorDistribution, edge_index: Any, weights: Any, *, keep: float, rule: str | None
    ) -> None:
        self.keep, self.rule = keep, rule
        self.distribution, self.n_nodes = distribution, distribution.n_nodes
        self.device, n_edges = edge_index.device, edge_index.shape[1]
        # As in EdgeTrackingSampler, ranks of the edges by weight replace their weights.
        self.edge_of_rank = torch.arange(n_edges, device=self.device)
        if weights is not None:
            self.edge_of_rank = torch.argsort(weights.detach().reshape(-1), stable=True)
        ranks = torch.empty_like(self.edge_of_rank)
        ranks[self.edge_of_rank] = torch.arange(n_edges, device=self.device)
        first, second = edge_index
        entries = (first, second, ranks) if rule is None else _both_directions(first, second, ranks)
        first, self.second, self.ranks = self._heaviest(*entries)
        self.degrees = torch.bincount(first, minlength=self.n_nodes)
        self.start = self.degrees.cumsum(0) - self.degrees
        arrays: tuple[Any, ...] = ()
        if isinstance(distribution, DonorLists):
            arrays = distribution.list_of, distribution.offsets, distribution.members
        elif isinstance(distribution, DonorRows):
            arrays = distribution.P.indptr, distribution.P.indices, distribution.cumulative
        self.tables = [self._tensor(array) for array in arrays]

    def sample(self, seed: SeedSequence) -> tuple[Any, Any]:
        """Return the ``edge_index`` of the first sample of a seed, and the observed edge behind each edge."""
        key = sample_key(seed, 0)
        donors = self._donors(key)
        lengths = self.degrees[donors]
        shift = self.start[donors] - (lengths.cumsum(0) - lengths)
        nodes = torch.arange(self.n_nodes, device=self.device)
        first = torch.repeat_interleave(nodes, lengths)
        entries = torch.repeat_interleave(shift, lengths)
        entries += torch.arange(len(entries), device=self.device)
        second, ranks = self.second[entries], self.ranks[entries]
        if self.rule == "one-endpoint":
            low, high = torch.minimum(first, second), torch.maximum(first, second)
            is_selected = (_threefry(key, low, high)[0] >> 31).bool() == (first > second)
            first, second, ranks = first[is_selected], second[is_selected], ranks[is_selected]
        if self.rule is not None:
            first, second, ranks = self._heaviest(*_both_directions(first, second, ranks))
        return torch.stack([first, second]), self.edge_of_rank[ranks]

    def _donors(self, key: Key) -> Any:
        """Draw a donor for every node, by the numbers of :meth:`.DonorDistribution.draw`."""
        nodes = torch.arange(self.n_nodes, device=self.device)
        high, low = _threefry(key, nodes, nodes)
        uniforms = ((high >> 5).double() * 2.0**26 + (low >> 6).double()) * 2.0**-53
        if not self.tables:  # a distribution of another class draws on the CPU
            return self._tensor(self.distribution.draw(uniforms.cpu().numpy(), self.keep))
        is_own = uniforms < self.keep
        rescaled = torch.where(is_own, 0.0, (uniforms - self.keep) / max(1.0 - self.keep, 2.0**-53))
        search = _draw_from_lists if isinstance(self.distribution, DonorLists) else _draw_from_rows
        return torch.where(is_own, nodes, search(rescaled, *self.tables))

    def _heaviest(self, first: Any, second: Any, ranks: Any) -> tuple[Any, Any, Any]:
        """Return each pair once, in ascending order, with the highest of its ranks."""
        pairs, inverse = torch.unique(first * self.n_nodes + second, return_inverse=True)
        highest = torch.zeros_like(pairs).scatter_reduce(0, inverse, ranks, "amax", include_self=False)
        n_nodes = max(self.n_nodes, 1)
        return pairs // n_nodes, pairs % n_nodes, highest

    def _tensor(self, array: Any) -> Any:
        dtype = np.float64 if array.dtype.kind == "f" else np.int64
        return torch.from_numpy(array.astype(dtype)).to(self.device)


def _both_directions(first: Any, second: Any, ranks: Any) -> tuple[Any, Any, Any]:
    """Return the entries without loops, followed by their transpose."""
    is_edge = first != second
    first, second, ranks = first[is_edge], second[is_edge], ranks[is_edge]
    return torch.cat([first, second]), torch.cat([second, first]), torch.cat([ranks, ranks])


def _draw_from_lists(uniforms: Any, list_of: Any, offsets: Any, members: Any) -> Any:
    start, end = offsets[list_of], offsets[list_of + 1]
    position = torch.minimum((uniforms * (end - start)).long(), end - start - 1)
    return members[start + position]


def _draw_from_rows(uniforms: Any, indptr: Any, indices: Any, cumulative: Any) -> Any:
    """Search every row for the first cumulative probability above the uniform number."""
    low, high = indptr[:-1].clone(), indptr[1:] - 1
    n_steps = int((high - low).max()).bit_length() if len(low) else 0
    for _ in range(n_steps):
        middle = (low + high) >> 1
        is_above = cumulative[middle] > uniforms
        is_open = low < high
        high = torch.where(is_open & is_above, middle, high)
        low = torch.where(is_open & ~is_above, middle + 1, low)
    return indices[low]


def _threefry(key: Key, first: Any, second: Any) -> tuple[Any, Any]:
    """Return the words of :func:`nodecopy._core.random.threefry`, as 64-bit integers."""
    schedule = (*key, key[0] ^ key[1] ^ PARITY)
    x, y = (first + schedule[0]) & WORD, (second + schedule[1]) & WORD
    for round_number in range(N_ROUNDS):
        rotation = ROTATIONS[round_number % 8]
        x = (x + y) & WORD
        y = (((y << rotation) | (y >> (32 - rotation))) & WORD) ^ x
        if round_number % 4 == 3:
            injection = round_number // 4 + 1
            x = (x + schedule[injection % 3]) & WORD
            y = (y + schedule[(injection + 1) % 3] + injection) & WORD
    return x, y


torch: Any = import_optional("torch", "NodeCopy")  # type: ignore[no-redef]
get_worker_info = torch.utils.data.get_worker_info
Data: Any = import_optional("torch_geometric.data", "NodeCopy").Data
Transform: Any = import_optional("torch_geometric.transforms", "NodeCopy").BaseTransform


class TransformSeeds(IntEnum):
    """Children of the seed of :class:`NodeCopy`."""

    MAIN_PROCESS = 0
    WORKERS = 1


class NodeCopy(Transform):  # type: ignore[misc]
    """Replace a graph by a sample in which every node has the neighbours of its donor.

    Use it in ``Compose``, as ``transform=`` of a dataset (not as ``pre_transform=``, which would draw one
    sample only) or in the training loop, on single graphs or on a ``Batch``, in which the donors of a node
    come from its own graph. Node attributes are kept; the attributes of an edge are those of the edge it was
    copied from. A sample is computed on the device of the data, and the same on every device; edges leave
    the device only to fit a donor rule that reads them, such as :class:`.Jaccard`.

    Parameters
    ----------
    donors
        Donor rule, such as :class:`.NearestNeighbours` (by ``x``), :class:`.Jaccard` (by edges) or
        :class:`.SameLabel`.
    keep, symmetrise
        As in :class:`.NodeCopying`.
    labels, mask
        Attributes of the data with the classes of nodes and with a mask of the nodes whose classes the donor rule
        may use. By default ``data.y`` and, if it exists, ``data.train_mask``, so that test labels are not
        used. Other nodes count as unlabelled and keep their neighbours. For predicted classes set
        ``labels="predicted", mask=None``.
    directed
        Whether the graph is directed; by default ``not data.is_undirected()``.
    rng
        Seed. Every call draws another sample; the same seed gives the same sequence. A worker of a
        ``DataLoader`` also uses the seed of the loader, so that workers and epochs differ and
        ``torch.manual_seed`` makes them reproducible.

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
        donors: DonorRule,
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
        self._last: tuple[list[Any], EdgeTrackingSampler | DeviceSampler] | None = None

    def forward(self, data: Any) -> Any:
        """Return a sample of ``data``; calling the transform leaves the data of the caller unchanged."""
        if not isinstance(data, Data) or data.edge_index is None:
            raise InputError("data of NodeCopy", f"must be a Data with an edge_index; got {type_name(data)}.")
        sampler = self._get_sampler(data)
        seed = self._next_seed()
        if isinstance(sampler, DeviceSampler):
            edge_index, origins = sampler.sample(seed)
        else:
            first, second, origin = sampler.sample(rng=seed)
            edge_index = torch.from_numpy(np.stack([first, second]).astype(np.int64))
            edge_index, origins = (
                part.to(data.edge_index.device) for part in (edge_index, torch.from_numpy(origin))
            )
        keys = [key for key, _ in data if data.is_edge_attr(key)]
        attributes = {key: data[key][origins] for key in keys if key != "edge_index"}
        data.edge_index = edge_index
        for key, values in attributes.items():
            data[key] = values
        _update_slices(data, keys)
        return data

    def _next_seed(self) -> Any:
        """Return the seed of the next call, which differs between workers and epochs."""
        worker = get_worker_info()
        source = child(self.seed, TransformSeeds.MAIN_PROCESS)
        if worker is not None:
            source = child(self.seed, TransformSeeds.WORKERS, worker.seed)
        self.n_calls += 1
        return child(source, self.n_calls - 1)

    def _get_sampler(self, data: Any) -> EdgeTrackingSampler | DeviceSampler:
        """Return the sampler of the last call if the data are the same, unchanged tensors, else a new one."""
        check_text(self.labels, "labels of NodeCopy")
        if self.mask is not None:
            check_text(self.mask, "mask of NodeCopy")
        inputs = [getattr(data, name, None) for name in FITTED_ATTRIBUTES]
        inputs.append(getattr(data, self.labels, None))
        inputs.append(None if self.mask is None else getattr(data, self.mask, None))
        state = [(tensor, getattr(tensor, "_version", 0)) for tensor in inputs]
        if self._last is None or any(
            tensor is not last or version != last_version
            for (tensor, version), (last, last_version) in zip(state, self._last[0], strict=True)
        ):
            self._last = state, self._fit(data)
        return self._last[1]

    def _fit(self, data: Any) -> EdgeTrackingSampler | DeviceSampler:
        """Fit the donor rule; edges on a GPU stay there unless the donor rule reads them."""
        directed = not data.is_undirected() if self.directed is None else self.directed
        on_cpu = data.edge_index.device.type in COMPUTED_ON_CPU
        plain = data.__class__(edge_index=data.edge_index, x=data.x, num_nodes=data.num_nodes)
        weights = plain.edge_weight = _weights(data)
        plain.y = self._visible_labels(data)
        if not on_cpu and not reads_edges(self.donors):
            plain.edge_index, plain.edge_weight = data.edge_index[:, :0], None
        rule, sizes = self.donors, _graph_sizes(data)
        if sizes is not None:
            rule = WithinGraphs(rule, sizes)
        graph = from_pyg(plain, directed=directed)
        with mute_data_warnings():  # the batches of a training loop would warn at every step
            model = NodeCopying(rule, self.keep, self.symmetrise).fit(graph)
        self._has_warned = self._has_warned or warn_of_unlabelled_nodes(rule, graph)
        if not on_cpu:
            symmetrise = None if model.graph_.directed else self.symmetrise
            return DeviceSampler(
                model.distribution_, data.edge_index, weights, keep=self.keep, rule=symmetrise
            )
        first, second = data.edge_index.cpu().numpy()
        values = np.ones(len(first)) if weights is None else to_numpy(weights)
        return EdgeTrackingSampler(model, first, second, values)

    def _visible_labels(self, data: Any) -> Any:
        """Return the classes of nodes in the mask and -1 elsewhere; ``None`` for classes of graphs."""
        labels: Any = getattr(data, self.labels, None)
        if not _is_real(labels) or labels.is_floating_point() or labels.numel() != data.num_nodes:
            return None
        labels = labels.reshape(-1).to(torch.int64, copy=True)
        mask = None if self.mask is None else getattr(data, self.mask, None)
        if mask is not None:
            mask = torch.as_tensor(mask, device=labels.device)
            if mask.numel() % len(labels) or mask.dtype not in (torch.bool, torch.uint8):
                raise InputError(
                    f"data.{self.mask} must hold a boolean for each of {len(labels)} nodes; "
                    f"got {mask.dtype}, {list(mask.shape)}."
                )
            labels[~mask.bool().reshape(len(labels), -1)[:, 0]] = -1
        return labels

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": None}

    def __repr__(self) -> str:
        return f"NodeCopy({self.donors!r}, keep={self.keep!r}, symmetrise={self.symmetrise!r})"


WEIGHT_ATTRIBUTES = ("edge_weight", "edge_attr")
FITTED_ATTRIBUTES = ("edge_index", "x", "batch", *WEIGHT_ATTRIBUTES)


COMPUTED_ON_CPU = ("cpu", "mps")
"""Types of devices whose samples are computed on the CPU; those of Apple have no doubles."""


def _weights(data: Any) -> Any:
    """Return an attribute with one non-negative number per edge as weights, if there is one."""
    for name in WEIGHT_ATTRIBUTES:
        values: Any = getattr(data, name, None)
        if _is_real(values) and values.numel() == data.edge_index.shape[1] and (values >= 0).all():
            return values.reshape(-1)
    return None


def _is_real(values: Any) -> bool:
    """Return whether an attribute is a tensor of real numbers."""
    return torch.is_tensor(values) and not values.is_complex()


def _graph_sizes(data: Any) -> NDArray[np.int64] | None:
    """Return the number of nodes of each graph of a batch, ``None`` for a single graph."""
    batch = getattr(data, "batch", None)
    if batch is None or not len(batch):
        return None
    numbers = to_numpy(batch)
    if numbers.shape != (data.num_nodes,) or (np.diff(numbers) < 0).any():
        raise InputError("data.batch must hold the number of each node's graph, in ascending order.")
    sizes = np.bincount(numbers)
    return sizes if np.count_nonzero(sizes) > 1 else None


def _update_slices(data: Any, keys: list[str]) -> None:
    """Record which edges belong to which graph of a batch, as ``to_data_list`` needs it."""
    slices = getattr(data, "_slice_dict", None)
    if slices is None:
        return
    counts = torch.bincount(data.batch[data.edge_index[0]], minlength=data.num_graphs).cpu()
    ends = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    data._slice_dict = {key: ends if key in keys else values for key, values in slices.items()}


def to_pyg(graph: Graph) -> Any:
    """Return a graph as a ``Data``, with undirected edges in both directions.

    Features and weights are in single precision, as networks expect, and sparse features become dense. Node
    ids and label names are lost; nodes are numbered from 0.

    >>> to_pyg(Graph.from_edges([0, 1], [1, 2], labels=[0, 1, 0]))
    Data(num_nodes=3, edge_index=[2, 4], y=[3])
    """
    check_type(graph, Graph, "graph", "a Graph")
    torch = import_optional("torch", "to_pyg")
    data = import_optional("torch_geometric.data", "to_pyg").Data(num_nodes=graph.n_nodes)
    rows, features = graph.rows, graph.features
    data.edge_index = torch.from_numpy(np.stack([rows.row_numbers, rows.indices]).astype(np.int64))
    if rows.weights is not None:
        data.edge_weight = torch.from_numpy(_as_single(rows.weights, "weights"))
    if features is not None:
        dense = features.toarray() if isinstance(features, sparse.csr_array) else features
        data.x = torch.from_numpy(_as_single(dense, "features"))
    if graph.labels is not None:
        data.y = torch.from_numpy(graph.labels.copy())
    return data


def _as_single(values: NDArray[Any], name: str) -> NDArray[np.float32]:
    """Return numbers in single precision, or raise an error if it cannot hold them."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    check_finite(single, f"{name} in single precision")
    return single
