"""Error correction by node copying (the paper's Algorithm 2), and its control without copying."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.csr import IntArray
from nodecopy._core.random import child, sample_key, threefry, unit_interval
from nodecopy._core.validation import check_choice, check_integer
from nodecopy.classify import Classifier
from nodecopy.classify.seeds import ClassifierSeeds
from nodecopy.defend.base import Case, Correction, checked_nodes
from nodecopy.defend.donors import search
from nodecopy.defend.suspicion import suspicion
from nodecopy.defend.trust import trusted_neighbourhoods
from nodecopy.defend.two_hop import LocalCopying, WholeCopying
from nodecopy.features.neighbours import NeighbourSearch
from nodecopy.graph import Graph


@dataclass(frozen=True, eq=False)
class Donors:
    """What is prepared for one graph: how to find donors, and what they say of a node."""

    case: Case
    search: NeighbourSearch
    told: Any

    @property
    def draws(self) -> SeedSequence:
        return child(self.case.seed, ClassifierSeeds.DONOR_DRAWS)


class _DonorDefence(Correction):
    """Predictions averaged over donors, the ``n_donors`` nearest nodes by some embedding."""

    def __init__(
        self,
        classifier: Classifier | None = None,
        donors: Any = "expected",
        n_donors: int = 10,
        n_graphs: int | None = None,
        *,
        retrain: bool = False,
        cautious: bool = False,
        device: str = "cpu",
    ) -> None:
        super().__init__(classifier, retrain=retrain, device=device)
        self.donors, self.n_donors, self.n_graphs, self.cautious = donors, n_donors, n_graphs, cautious

    def nearest_donors(self, nodes: ArrayLike, *, graph: Graph | None = None) -> NDArray[np.int64]:
        """Who may be the donors of given nodes, ``[len(nodes), n_donors]``, nearest first."""
        prepared, n_nodes = self._prepared(graph)
        return self._nearest(prepared, checked_nodes(nodes, n_nodes))

    def _check(self, n_nodes: int) -> None:
        name = type(self).__name__
        check_integer(self.n_donors, f"n_donors of {name}", low=1, high=n_nodes - 1, high_name="n_nodes - 1")
        if self.n_graphs is not None:
            check_integer(self.n_graphs, f"n_graphs of {name}", low=1)

    def _corrector(self, case: Case) -> Donors:
        seed = child(case.seed, ClassifierSeeds.DONOR_EMBEDDING)
        owner = type(self).__name__
        found = search(self.donors, case.places, seed=seed, device=self.device, owner=owner)
        return Donors(case, found, self._teller(case))

    @abstractmethod
    def _teller(self, case: Case) -> Any:
        """``(nodes, donors) -> [pairs, classes]``."""

    def _nearest(self, prepared: Donors, nodes: IntArray) -> NDArray[np.int64]:
        _, found = prepared.search.nearest(self.n_donors, of=nodes, include_self=False)
        return found.reshape(len(nodes), self.n_donors).astype(np.int64)

    def _corrected(self, corrector: Any, nodes: IntArray) -> NDArray[np.floating[Any]]:
        copied = self._copied(corrector, nodes)
        if not self.cautious:
            return copied
        trust, graph = trusted_neighbourhoods(corrector.case.attacked, corrector.case.places.features, nodes)
        own = corrector.case.predict(graph)[nodes]
        mixed: NDArray[np.floating[Any]] = (1 - trust) * copied + trust * own
        return mixed

    def _copied(self, corrector: Donors, nodes: IntArray) -> NDArray[np.floating[Any]]:
        """The mean of what the donors tell of each node."""
        if not len(nodes):
            return corrector.case.probabilities[:0]
        donors = self._nearest(corrector, nodes)
        if self.n_graphs is not None:
            # A node's draws depend on the seed and its number, not on who is asked for beside it.
            number, draw = np.broadcast_arrays(nodes[:, None], np.arange(self.n_graphs))
            uniforms = unit_interval(*threefry(sample_key(corrector.draws, 0), number, draw))
            donors = np.take_along_axis(donors, (uniforms * self.n_donors).astype(np.int64), axis=1)
        pairs = np.repeat(nodes, donors.shape[1]), donors.ravel()
        told: NDArray[np.floating[Any]] = corrector.told(*pairs)
        mean: NDArray[np.floating[Any]] = told.reshape(*donors.shape, told.shape[-1]).mean(axis=1)
        return mean


class CopyingDefence(_DonorDefence):
    """Correct predictions at attacked nodes by giving them the neighbourhoods of similar nodes.

    The classifier is trained on the attacked graph. At a node that may have been attacked, its
    prediction is replaced by the mean of what it predicts with each donor's neighbourhood in place of
    the node's own. ``predict`` and ``predict_proba`` still give the classifier's own predictions.

    Parameters
    ----------
    classifier
        What to train, a GCN by default; :meth:`around` takes one that is trained already.
    donors
        How donors are found, always among all other nodes, also those that are corrected beside it.
        ``"vgae"`` (the paper) or ``"gae"``: by the autoencoder's embedding of the attacked graph.
        ``"features"``: by features alone. ``"neighbourhoods"``: by the features within two hops.
        ``"expected"``: nodes with such features that live where such a node should live, as is learned
        from all other nodes; its own edges have no direct say. An array with one row per node, or a function
        that makes one of a graph: by that. Distances are Euclidean.
    n_donors
        How many donors a node has (the paper's P).
    n_graphs
        How many copied graphs are averaged (the paper's N_G), each with a donor drawn uniformly from
        them; ``None``: every donor once.
    retrain
        As in :class:`.Correction`.
    cautious
        Whether a node keeps what seems right of its own neighbourhood, so that one that was not attacked
        after all loses little: its edges are believed as far as nodes with such features tend to be
        joined (:func:`.trusted_neighbourhoods`), and what is predicted with the edges that are believed
        is mixed with the copied prediction, by the mean belief. An attacker may find edges that are
        believed, so this costs accuracy where attacks are strong. Nodes are not corrected each as if it
        were alone.
    place
        ``"donor"``: the node's features are put in the donor's place, as in the authors' code.
        ``"row"``: the node itself gets the donor's row, undirected in both directions.
    device
        As in :class:`.Correction`.

    Notes
    -----
    - *Cost*: with GCNs, also those of a Bayesian GCN, exactly the two-hop neighbourhoods of the donors
      are evaluated; ``retrain`` and ``cautious`` look at the whole graph in every call. Other
      classifiers predict on a whole graph for every donor of every node.
    - *Donors' edges* may be attacked too; nothing is done about that.
    - *Dropout samples* of a Bayesian GCN's networks are not drawn in corrections.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import CopyingDefence
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> defence = CopyingDefence().fit(digits, split.train, rng=0)
    >>> defence.correct([7, 3]).shape
    (2, 10)
    """

    def __init__(
        self,
        classifier: Classifier | None = None,
        donors: Any = "expected",
        n_donors: int = 10,
        n_graphs: int | None = None,
        *,
        retrain: bool = False,
        cautious: bool = False,
        place: str = "donor",
        device: str = "cpu",
    ) -> None:
        super().__init__(
            classifier, donors, n_donors, n_graphs, retrain=retrain, cautious=cautious, device=device
        )
        self.place = place

    def suspects(self, *, graph: Graph | None = None) -> NDArray[np.float64]:
        """How attacked every node looks, the higher the more; see :func:`.suspicion`.

        All nodes are copied for this, and donors are looked for in time that grows with their square.
        """
        return self._suspicion(self._prepared(graph)[0])[0]

    def _suspicion(self, prepared: Donors) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[Any]]:
        """The score of every node; its prediction with the donors' neighbourhoods, and with similar ones."""
        case, nodes = prepared.case, np.arange(prepared.case.graph.n_nodes)
        copied = self._copied(prepared, nodes)
        similar = self._copied(self._alike(case), nodes)
        places = case.places
        scores = suspicion(case.graph, places.features, places.expected, case.probabilities, copied, similar)
        return scores, copied, similar

    def _alike(self, case: Case) -> Donors:
        """Donors that live as a node does."""
        found = search("neighbourhoods", case.places, seed=case.seed, device=self.device, owner="suspects")
        return Donors(case, found, self._teller(case))

    def _check(self, n_nodes: int) -> None:
        super()._check(n_nodes)
        check_choice(self.place, "place of CopyingDefence", ["donor", "row"])

    def _teller(self, case: Case) -> Any:
        recipe = None if case.networks is None else case.networks.recipe
        if recipe is not None and recipe.propagation == "none":  # sees no neighbours, copied or not
            return _OwnPredictions(case.probabilities, of_donors=False)
        if recipe is not None and recipe.propagation == "convolution" and recipe.rank is None:
            assert case.networks is not None
            return LocalCopying(case.networks, case.graph, self.place)
        return WholeCopying(case.predict, case.graph, self.place)


class DonorAverage(_DonorDefence):
    """A control: the mean of what the classifier predicts for the donors themselves, nothing copied.

    What copying gains beyond this comes from copying; the rest comes from the choice of donors.
    Parameters are those of :class:`CopyingDefence`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import DonorAverage
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> DonorAverage().fit(digits, split.train, rng=0).correct([7, 3]).shape
    (2, 10)
    """

    def _teller(self, case: Case) -> _OwnPredictions:
        return _OwnPredictions(case.probabilities, of_donors=True)


@dataclass(frozen=True, eq=False)
class _OwnPredictions:
    """Nodes, or their donors, as they are predicted without copying."""

    probabilities: NDArray[np.float32]
    of_donors: bool

    def __call__(self, nodes: IntArray, donors: IntArray) -> NDArray[np.float32]:
        return self.probabilities[donors if self.of_donors else nodes]
