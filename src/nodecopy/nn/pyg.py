"""Node copying as a transform of PyTorch Geometric."""

from __future__ import annotations

from typing import Any

import numpy as np

from nodecopy._core.checks import check_text, type_name
from nodecopy._core.imports import import_optional
from nodecopy._core.messages import mute_data_warnings, mute_decisions
from nodecopy._core.random import Rng, child, seed_sequence
from nodecopy.copying.donors import DonorRule
from nodecopy.copying.model import EdgeTrackingSampler, NodeCopying, warn_of_unlabelled_nodes
from nodecopy.errors import InputError
from nodecopy.io.pyg import convert_pyg, read_classes, read_mask, to_numpy

torch: Any = import_optional("torch", "NodeCopy")
get_worker_info = torch.utils.data.get_worker_info
Data: Any = import_optional("torch_geometric.data", "NodeCopy").Data
Transform: Any = import_optional("torch_geometric.transforms", "NodeCopy").BaseTransform
WEIGHT_ATTRIBUTES = ("edge_weight", "edge_attr")
MAIN_PROCESS_SEED, WORKERS_SEED = range(2)  # children of the seed of NodeCopy
FITTED_ATTRIBUTES = ("edge_index", "x", *WEIGHT_ATTRIBUTES)


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
        seed = self._next_seed()
        if getattr(data, "batch", None) is None:
            return self._copy(data, seed)
        if not hasattr(data, "to_data_list"):
            raise InputError(
                "data.batch", "must be left out, or be that of a Batch; use Batch.from_data_list."
            )
        graphs = [self._copy(graph, child(seed, n)) for n, graph in enumerate(data.to_data_list())]
        return type(data).from_data_list(graphs)

    def _copy(self, data: Any, seed: Any) -> Any:
        first, second, origin = self._get_sampler(data).sample(rng=seed)
        device = data.edge_index.device
        origins = torch.from_numpy(origin).to(device)
        for key in [key for key, _ in data if data.is_edge_attr(key) and key != "edge_index"]:
            data[key] = data[key][origins]
        data.edge_index = torch.from_numpy(np.stack([first, second]).astype(np.int64)).to(device)
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
        with mute_data_warnings(), mute_decisions():  # of every step of a training loop
            converted = convert_pyg(plain, "edge_weight", directed)
            graph = converted.with_labels("y").replace(features=converted.attributes.get("x"))
            model = NodeCopying(self.donors, self.keep, self.symmetrise).fit(graph)
        self._has_warned = self._has_warned or warn_of_unlabelled_nodes(self.donors, graph)
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


def _weights(data: Any) -> Any:
    for name in WEIGHT_ATTRIBUTES:
        values: Any = getattr(data, name, None)
        if _is_real(values) and values.numel() == data.edge_index.shape[1] and (values >= 0).all():
            return values.reshape(-1)
    return None


def _is_real(values: Any) -> bool:
    return torch.is_tensor(values) and not values.is_complex()
