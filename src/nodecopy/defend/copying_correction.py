"""Error correction by node copying (the paper's Algorithm 2)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.csr import IntArray
from nodecopy._core.random import child
from nodecopy._core.validation import check_choice, check_integer
from nodecopy.classify import Classifier, ModuleClassifier
from nodecopy.classify.ensemble import Ensemble
from nodecopy.defend.base import Defence, check_nodes
from nodecopy.defend.copiers import MODES, Copier, PredictionsWithoutCopying, TwoHopCopier, WholeGraphCopier
from nodecopy.defend.corrections import AttackedState, Correction
from nodecopy.defend.defence_seeds import DefenceSeeds
from nodecopy.defend.donors import DonorFinder, build_donor_search
from nodecopy.defend.module_copier import ModuleCopier
from nodecopy.defend.suspicion import score_suspicion
from nodecopy.defend.trust import estimate_trust
from nodecopy.graph import Graph


@dataclass(frozen=True, eq=False)
class CopyingCorrection(Correction):
    """Predictions averaged over donors: a donor finder and a copier on one graph.

    Parameters
    ----------
    state
        The attacked graph and the classifier's predictions.
    finder
        Finds the donors.
    copier
        Predicts a node with a donor's neighbourhood.
    n_graphs
        Number of donors drawn for each node; ``None`` takes every donor once.
    trust_edges
        Whether to mix the result with the prediction from the trusted edges of each node.
    """

    state: AttackedState
    finder: DonorFinder
    copier: Copier
    n_graphs: int | None = None
    trust_edges: bool = False

    def predict_proba(self, nodes: IntArray) -> NDArray[np.floating[Any]]:
        copied = self.average_copies(nodes)
        if not self.trust_edges:
            return copied
        state = self.state
        trust, trusted_graph = estimate_trust(state.complete_graph, state.embeddings.features, nodes)
        own: NDArray[np.floating[Any]] = state.predict(trusted_graph)[nodes]
        return (1 - trust) * copied + trust * own

    def average_copies(self, nodes: IntArray) -> NDArray[np.floating[Any]]:
        """Return the mean prediction of each node over its donors."""
        if not len(nodes):
            return self.state.probabilities[:0]
        if self.n_graphs is None:
            donors = self.finder.find(nodes)
        else:
            seed = child(self.state.seed, DefenceSeeds.DONOR_DRAWS)
            donors = self.finder.draw(nodes, self.n_graphs, seed)
        copies = self.copier.predict_pairs(np.repeat(nodes, donors.shape[1]), donors.ravel())
        mean: NDArray[np.floating[Any]] = copies.reshape(*donors.shape, copies.shape[-1]).mean(axis=1)
        return mean

    @property
    def suspicion(self) -> NDArray[np.float64]:
        """Return the suspicion of every node."""
        return self.score_nodes()[0]

    def with_similar_donors(self) -> CopyingCorrection:
        """Return the correction by donors whose neighbourhoods are similar to the node's own."""
        search = self.state.embeddings.search("neighbourhoods", parameter="donors", owner="suspicion")
        return replace(self, finder=DonorFinder(search, self.finder.n_donors))

    def score_nodes(self) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[Any]]:
        """Return the suspicion of every node, and its mean prediction by its donors and by similar donors."""
        state, nodes = self.state, np.arange(self.state.graph.n_nodes)
        copied, similar = (part.average_copies(nodes) for part in (self, self.with_similar_donors()))
        features, expected = state.embeddings.features, state.embeddings.expected
        scores = score_suspicion(state.graph, features, expected, state.probabilities, copied, similar)
        return scores, copied, similar


def choose_copier(state: AttackedState, mode: str) -> Copier:
    """Return the cheapest exact copier for a classifier."""
    if isinstance(state.networks, Ensemble):
        recipe = state.networks.recipe
        if recipe.propagation == "none":
            return PredictionsWithoutCopying(state.probabilities)
        if recipe.propagation == "convolution" and recipe.rank is None:
            return TwoHopCopier(state.networks, state.graph, mode)
    if isinstance(state.classifier, ModuleClassifier) and mode == "swap-features":
        return ModuleCopier(state.classifier.build_network(), state.graph)
    return WholeGraphCopier(state.predict, state.graph, mode)


@dataclass(eq=False, repr=False)
class DonorDefence(Defence):
    """The base class of defences that find donors; parameters as in :class:`CopyingDefence`."""

    classifier: Classifier | None = None
    donors: Any = "expected"
    n_donors: int = 10
    n_graphs: int | None = None
    _: KW_ONLY
    retrain: bool = False
    device: str = "cpu"

    def check_parameters(self, graph: Graph) -> None:
        caller, n_others = type(self).__name__, graph.n_nodes - 1
        check_integer(self.n_donors, f"n_donors of {caller}", low=1, high=n_others, high_name="n_nodes - 1")
        if self.n_graphs is not None:
            check_integer(self.n_graphs, f"n_graphs of {caller}", low=1)

    def build_correction(
        self, state: AttackedState, copier: Copier, *, trust_edges: bool = False
    ) -> CopyingCorrection:
        """Return the correction with the donors of the parameters and a copier."""
        search = build_donor_search(
            self.donors,
            state.embeddings,
            seed=child(state.seed, DefenceSeeds.DONOR_EMBEDDING),
            device=self.device,
            caller=type(self).__name__,
        )
        finder = DonorFinder(search, self.n_donors)
        return CopyingCorrection(state, finder, copier, self.n_graphs, trust_edges)

    def score_suspicion(self, *, graph: Graph | None = None) -> NDArray[np.float64]:
        """Return a score of every node; attacked nodes tend to have the highest ones.

        See :func:`.score_suspicion`. All nodes are copied, and the time to find donors grows with the square
        of their number.
        """
        correction: Any = self.get_state_and_correction(graph)[1]
        scores: NDArray[np.float64] = correction.suspicion
        return scores

    def nearest_donors(self, nodes: ArrayLike, *, graph: Graph | None = None) -> NDArray[np.int64]:
        """Return the donors of some nodes, ``[len(nodes), n_donors]``, nearest first."""
        correction: Any
        state, correction = self.get_state_and_correction(graph)
        donors: NDArray[np.int64] = correction.finder.find(check_nodes(state.graph, nodes))
        return donors


@dataclass(eq=False, repr=False, kw_only=True)
class CopyingDefence(DonorDefence):
    """Correct predictions at attacked nodes by giving them the neighbourhoods of similar nodes.

    The classifier is trained on the attacked graph. At a node that may have been attacked, its prediction is
    replaced by the mean of its predictions with each donor's neighbourhood in place of the node's own.
    ``predict`` and ``predict_proba`` still return the classifier's own predictions.

    Parameters
    ----------
    classifier
        The classifier to train, a GCN by default; :meth:`from_classifier` takes one that is trained.
    donors
        How donors are chosen, among all other nodes, those that are corrected included. ``"vgae"`` (the
        paper) or ``"gae"``: by the autoencoder's embedding of the attacked graph. ``"features"``: by
        features alone. ``"neighbourhoods"``: by the features within two hops. ``"expected"``: by features
        and the neighbourhood expected from them, which is learned from all other nodes, so that the node's
        own edges have no direct influence. Or an array with one row per node, or a function that returns
        one for a graph (``load`` then needs it in ``classes``). Distances are Euclidean.
    n_donors
        Number of donors of each node (the paper's P).
    n_graphs
        Number of copied graphs that are averaged (the paper's N_G), each with a donor drawn uniformly;
        ``None`` takes every donor once.
    retrain
        Whether :meth:`correct` trains the classifier again on the graph without the edges of the nodes that
        it corrects, so that an attack affects neither training nor donors through these edges. The
        correction of a node then depends on the others. It needs :meth:`fit`.
    trust_edges
        Whether to mix the correction with the prediction from those of the node's own edges that are
        plausible (see :func:`.estimate_trust`), so that a node that was not attacked loses little. An
        attacker may choose plausible edges, so this costs accuracy under strong attacks. The correction of
        a node then depends on the others.
    mode
        ``"swap-features"``: the node's features are put in place of the donor's, as in the authors' code.
        ``"copy-row"``: the node itself gets the donor's row of the adjacency, undirected in both directions.
    device
        ``"cpu"`` or ``"cuda"``, for the default classifier and for autoencoders; another classifier has its
        own.

    Notes
    -----
    - *Cost*: with GCNs, those of a Bayesian GCN included, only the two-hop neighbourhoods of the donors are
      evaluated; ``retrain`` and ``trust_edges`` use the whole graph in every call. Other classifiers predict
      on a whole graph for every donor of every node.
    - *Edges of donors* may have been attacked too; the defence does not correct these.
    - *Dropout samples* of a Bayesian GCN are not drawn in corrections.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.defend import CopyingDefence
    >>> digits = datasets.load("digits").subgraph(range(300))
    >>> split = datasets.label_split(digits.labels, 5, validation=0, test=200, rng=0)
    >>> CopyingDefence().fit(digits, split.train, rng=0).correct([7, 3]).tolist()
    [7, 3]
    """

    trust_edges: bool = False
    mode: str = "swap-features"

    def check_parameters(self, graph: Graph) -> None:
        super().check_parameters(graph)
        check_choice(self.mode, "mode of CopyingDefence", MODES)

    def prepare_correction(self, state: AttackedState) -> CopyingCorrection:
        return self.build_correction(state, choose_copier(state, self.mode), trust_edges=self.trust_edges)
