"""Graph models in which each pair of nodes is an edge or not, independently of the other pairs.

Autoencoders end in one vector f for each node, and sigma(f_i . f_j) scores a pair. How these scores
become probabilities to draw graphs from is the same for all of them and stands here.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from nodecopy._core.csr import freeze
from nodecopy._core.random import Rng
from nodecopy._core.validation import check_choice, check_indices, check_vector
from nodecopy.errors import InputError
from nodecopy.generators.base import EdgeListModel, Nodes, pairs_of
from nodecopy.generators.calibration import expected_edges, logistic_regression
from nodecopy.generators.link_prediction import Pairs, numbered_pairs
from nodecopy.generators.pair_loss import LOGITS_AT_ONCE, triangle_blocks
from nodecopy.graph import Graph

SAMPLERS = ("raw", "calibrated", "corrected")
THIN_BELOW = 0.1
"""Largest probability of a pair up to which it pays to draw candidates first."""
CANDIDATES_AT_ONCE = 2**16


@dataclass(frozen=True, eq=False)
class EdgeLaw:
    """The probability of each pair i < j to be an edge.

    Parameters
    ----------
    decoded
        One row f per node; the score of a pair is sigma(f_i . f_j).
    calibration
        Slope and intercept of a logistic regression on the score; ``None``: the score as it is.
    scale
        Multiplies the result, which stays at most one.
    """

    decoded: NDArray[np.float32]
    calibration: tuple[float, float] | None = None
    scale: float = 1.0

    @property
    def bound(self) -> float:
        """No pair has a larger probability: that of a score of 0 or 1, since all that follows is monotone."""
        return float(self._of_scores(torch.tensor([0.0, 1.0], dtype=torch.float64)).max())

    def of_pairs(self, first: Pairs, second: Pairs) -> NDArray[np.float64]:
        """The probabilities of some pairs."""
        logits = np.einsum("kd,kd->k", self.decoded[first], self.decoded[second], dtype=np.float64)
        found: NDArray[np.float64] = self._of_scores(torch.from_numpy(logits).sigmoid_()).numpy()
        return found

    def draw(self, draws: Generator) -> Pairs:
        """The edges of one graph, ``[2, size]``, row by row."""
        bound = self.bound
        found = list(self._thinned(draws, bound) if bound < THIN_BELOW else self._row_by_row(draws))
        return np.concatenate(found, axis=1) if found else np.zeros((2, 0), np.int64)

    def _of_scores(self, scores: Tensor) -> Tensor:
        """Changes its argument."""
        if self.calibration is not None:
            slope, intercept = self.calibration
            scores.mul_(slope).add_(intercept).sigmoid_()
        return scores.mul_(self.scale).clamp_(max=1.0) if self.scale != 1 else scores

    def _row_by_row(self, draws: Generator) -> Iterator[Pairs]:
        """A uniform number for every pair, a block of rows at a time."""
        z = torch.tensor(self.decoded)
        for rows in triangle_blocks(len(z), LOGITS_AT_ONCE["cpu"]):
            chances = self._of_scores((z[rows] @ z[rows.start :].T).double().sigmoid_())
            hits = (torch.from_numpy(draws.random(chances.shape)) < chances).triu_(1)
            yield np.stack(np.nonzero(hits.numpy())) + rows.start

    def _thinned(self, draws: Generator, bound: float) -> Iterator[Pairs]:
        """Every pair becomes a candidate at the largest probability, and stays at its own."""
        n_nodes = len(self.decoded)
        n_pairs, last = n_nodes * (n_nodes - 1) // 2, -1
        at_once = min(CANDIDATES_AT_ONCE, int(1.2 * n_pairs * bound) + 16)
        while bound > 0 and last < n_pairs:
            gaps = np.minimum(draws.geometric(bound, at_once), n_pairs + 1)
            numbers = last + np.cumsum(gaps)
            last = int(numbers[-1])
            pairs = numbered_pairs(numbers[numbers < n_pairs], n_nodes)
            yield pairs[:, draws.random(pairs.shape[1]) * bound < self.of_pairs(*pairs)]


class EdgeModel(EdgeListModel):
    """What graph models of independent edges share; a subclass trains and calls ``_learned``.

    Notes
    -----
    Samplers, with the score p = sigma(f_i . f_j) of a pair:

    - ``"raw"``: p itself. Training weighs edges as much as all other pairs together, so most p are near
      one half and samples are very dense.
    - ``"calibrated"``: sigma(a p + b), a logistic regression of "is an edge" on p over all pairs. By
      default edges weigh as much as all other pairs together here too. The paper does not say so, but
      only so are its calibrated samples denser than the observed graph, as it reports.
    - ``"corrected"``: these, scaled to the observed number of edges in expectation (fewer only where that
      would take probabilities above one).

    With ``balanced=False`` the regression is plain maximum likelihood. Its intercept sees to it that the
    expected number of edges is the observed one, so that nothing is left to correct.
    """

    embeddings_: NDArray[np.float32]
    decoded_: NDArray[np.float32]
    sampler: str
    balanced: bool
    device: str
    _sampling: tuple[str, bool]
    _law: EdgeLaw | None = None

    def embeddings(self) -> NDArray[np.float32]:
        """One row per node, before the decoder (a mean, where nodes have distributions); read-only."""
        self.check_fitted()
        return self.embeddings_

    def with_sampler(self, sampler: str) -> Self:
        """The same trained model with another sampler; nothing is trained again."""
        self.check_fitted()
        other = copy(self)
        other.sampler = sampler
        other._check_sampler()
        other._sampling, other._law = (sampler, self._sampling[1]), None
        return other

    @property
    def law_(self) -> EdgeLaw:
        """The probabilities of pairs, calibrated when first asked for: embeddings do without."""
        return self._ready()

    def sample_many(self, n: int, *, rng: Rng = None, workers: int = 1) -> Iterator[Graph]:
        """As :meth:`.GraphModel.sample_many`; calibrates before its threads need it."""
        self._ready()
        return super().sample_many(n, rng=rng, workers=workers)

    def edge_probabilities(self, first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
        """How likely a sample has an edge between ``first[k]`` and ``second[k]``, two different nodes."""
        self.check_fitted()
        law = self.law_
        one = check_indices(first, "first", size=len(law.decoded))
        other = check_indices(second, "second", size=len(law.decoded))
        check_vector(other, "second", length=len(one), per="pair")
        return law.of_pairs(one, other)

    def _draw(self, graph: Graph, draws: Generator) -> tuple[Nodes, Nodes]:
        first, second = self.law_.draw(draws)
        return first, second

    def _check_sampler(self) -> None:
        name = type(self).__name__
        check_choice(self.sampler, f"sampler of {name}", SAMPLERS)
        if not isinstance(self.balanced, bool):
            raise InputError(f"balanced of {name} must be True or False; got {self.balanced!r}.")

    def _learned(self, graph: Graph, embeddings: Tensor, decoded: Tensor) -> None:
        """Keep what training found."""
        vectors = decoded.detach()
        if not bool(vectors.isfinite().all()):
            name = type(self).__name__
            raise InputError(f"features and settings of {name} must not be so large that training overflows.")
        self.graph_ = graph.undirected()
        self.embeddings_ = freeze(embeddings.detach().cpu().numpy().copy())
        self.decoded_ = freeze(vectors.cpu().numpy().copy())
        self._sampling, self._law = (self.sampler, self.balanced), None

    def _ready(self) -> EdgeLaw:
        self.check_fitted()
        if self._law is None:
            self._law = self._calibrated(*self._sampling)
        return self._law

    def _calibrated(self, sampler: str, balanced: bool) -> EdgeLaw:
        law = EdgeLaw(self.decoded_)
        if sampler == "raw":
            return law
        # A model that was trained on a GPU may have been brought to where there is none.
        vectors = torch.tensor(self.decoded_, device=self.device if torch.cuda.is_available() else "cpu")
        edges = np.stack(pairs_of(self.graph_))
        calibration = logistic_regression(vectors, edges, balanced=balanced)
        law = replace(law, calibration=calibration)
        if sampler == "calibrated":
            return law
        return replace(law, scale=self.graph_.n_edges / expected_edges(vectors, calibration))
