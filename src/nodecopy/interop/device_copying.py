"""Node copying with torch operations, where the edges already lie on a GPU.

A sample is the same, bit by bit, as that of :class:`.EdgeTrackingSampler` with the same seed: random numbers
are those of :mod:`nodecopy._core.random`, and nothing else rounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import SeedSequence

from nodecopy._core.optional_imports import OptionalModule
from nodecopy._core.random import N_ROUNDS, PARITY, ROTATIONS, Key, sample_key
from nodecopy.copying.distributions import DonorDistribution, DonorLists, DonorRows

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
