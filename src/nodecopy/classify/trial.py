"""Classification problems: a graph, the nodes whose labels may be read, and a seed."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray

from nodecopy._core.notices import log_decision
from nodecopy._core.random import Rng, seed_sequence
from nodecopy._core.validation import check_sequence, check_type, check_unique
from nodecopy.conversion import convert_graph, training_nodes
from nodecopy.errors import InputError
from nodecopy.graph import UNLABELLED, Graph, class_codes, training_classes


def check_trials(trials: Any) -> list[Trial]:
    """Return trials as a list."""
    given = check_sequence(trials, "trials", "a list of trials")
    return [check_type(trial, Trial, "trials", "a list of trials, Trial(graph, train)") for trial in given]


@dataclass(frozen=True, eq=False, init=False)
class Trial:
    """A classification problem: a graph, the nodes whose labels may be read, and a seed.

    The graph's labels may hold every true label; a classifier reads those of ``train`` and ``validation``
    only. The classes are the distinct labels of the training nodes. A class that none of them has is left out
    with a :class:`~nodecopy.errors.DataWarning`, and its nodes count as unlabelled.

    Parameters
    ----------
    graph
        The observed graph.
    train
        Training nodes: positions, a boolean mask or node ids, of at least two classes. By default all
        labelled nodes that are not in ``validation``.
    validation
        Nodes that decide when training stops, or between models; none by default. Nodes of classes that are
        left out are dropped.
    rng
        Seed of everything that a classifier draws; fresh entropy by default.

    Attributes
    ----------
    classes
        The labels that are classes, in ascending order.
    codes
        The class number of every node, -1 where the graph has no label or one that is no class.
    n_classes
        Number of classes.
    soft_labels, weights
        Class probabilities and weights of the training nodes, if they have pseudo-labels
        (:meth:`with_pseudo_labels`); otherwise ``None``.
    predictions
        Class probabilities of all nodes from an earlier round of self-training, for graph models that read
        labels; otherwise ``None``.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN, Trial
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> trials = [Trial(club, [0, 33], rng=seed) for seed in range(3)]
    >>> len(GCN(n_epochs=50).fit_trials(trials))
    3
    """

    graph: Graph
    train: NDArray[np.int64]
    validation: NDArray[np.int64] | None
    rng: SeedSequence
    classes: NDArray[np.int64] = field(init=False, repr=False)
    codes: NDArray[np.int64] = field(init=False, repr=False)
    n_classes: int = field(init=False)
    soft_labels: NDArray[np.float32] | None = field(init=False, repr=False, default=None)
    weights: NDArray[np.float32] | None = field(init=False, repr=False, default=None)
    predictions: NDArray[np.float32] | None = field(init=False, repr=False, default=None)

    def __init__(
        self,
        graph: Graph,
        train: ArrayLike | None = None,
        validation: ArrayLike | None = None,
        rng: Rng = None,
    ) -> None:
        train, graph = training_nodes(graph, train), convert_graph(graph, "graph")
        if graph.labels is None:
            raise InputError("a graph must have labels to be classified; this one has none.")
        n_labels = len(class_codes(graph.labels)[0])
        if n_labels < 2:
            raise InputError(
                f"a graph must have labels of at least two classes; got {n_labels}. Label "
                "nodes of another class, too."
            )
        every = np.flatnonzero(graph.labels != UNLABELLED)
        chosen = every if train is None else check_nodes(graph, train, "train")
        watched = None if validation is None else check_nodes(graph, validation, "validation")
        if train is None and watched is not None:
            chosen = np.setdiff1d(chosen, watched)
        if not len(chosen):
            raise InputError("train must hold at least one node; got none.")
        if watched is not None and len(both := np.intersect1d(chosen, watched)):
            raise InputError(f"validation must hold other nodes than train; got node {both[0]} in both.")
        if len(np.unique(graph.labels[chosen])) < 2:
            name = np.asarray(graph.named_labels())[chosen[0]]
            raise InputError(
                f"train must hold nodes of at least two classes; got only class {name}. Add nodes of another."
            )
        classes, codes = training_classes(graph, chosen)
        if watched is not None:
            is_known = codes[watched] != UNLABELLED
            if not is_known.all():
                n_left_out = int((~is_known).sum())
                log_decision(
                    f"validation: nodes of a class that no training node has are left out ({n_left_out} of "
                    f"{len(watched)})."
                )
            watched = watched[is_known]
        vars(self).update(graph=graph, train=chosen, validation=watched, rng=seed_sequence(rng))
        vars(self).update(classes=classes, codes=codes, n_classes=len(classes))

    @property
    def label_probabilities(self) -> NDArray[np.float32]:
        """Class probabilities of the training nodes: one at the class, or those of soft pseudo-labels."""
        if self.soft_labels is not None:
            return self.soft_labels
        probabilities: NDArray[np.float32] = np.eye(self.n_classes, dtype=np.float32)[self.codes[self.train]]
        return probabilities

    def with_graph(self, graph: Graph) -> Trial:
        """Return the same problem on a graph with the same nodes and labels and other edges or features."""
        changed = copy.copy(self)
        vars(changed).update(graph=graph)
        return changed

    def with_pseudo_labels(
        self,
        nodes: NDArray[np.int64],
        codes: NDArray[np.int64],
        *,
        soft: NDArray[np.float32] | None = None,
        weights: NDArray[np.float32] | None = None,
        predictions: NDArray[np.float32] | None = None,
        rng: Rng = None,
    ) -> Trial:
        """Return the problem with further training nodes, whose classes are pseudo-labels.

        Parameters
        ----------
        nodes, codes
            The further nodes and their class numbers; ``codes`` of the new trial holds them.
        soft
            Class probabilities of these nodes; by default their classes are certain.
        weights
            Weights of all training nodes in the loss, these nodes last; equal by default. Classifiers of your
            own may ignore weights and probabilities.
        predictions
            Class probabilities of all nodes, of which these classes are a part.
        rng
            Seed of the new trial.
        """
        changed, relabelled = copy.copy(self), self.codes.copy()
        relabelled[nodes] = codes
        train = np.concatenate([self.train, nodes])
        if soft is not None:
            vars(changed).update(soft_labels=np.concatenate([self.label_probabilities, soft]))
        vars(changed).update(train=train, codes=relabelled, weights=weights, rng=seed_sequence(rng))
        vars(changed).update(predictions=predictions)
        return changed


def check_nodes(graph: Graph, nodes: ArrayLike, name: str) -> NDArray[np.int64]:
    """Return the positions of labelled nodes, each of which may be given once."""
    chosen = graph.positions(nodes, name)
    if len(chosen) == graph.n_nodes > 2 and chosen.max() <= 1:
        raise InputError(
            f"{name} must be positions, a boolean mask or node ids; got a mask of integers. "
            f"Pass np.asarray({name}, bool)."
        )
    check_unique(chosen, name)
    assert graph.labels is not None
    unlabelled = chosen[graph.labels[chosen] == UNLABELLED]
    if len(unlabelled):
        raise InputError(f"{name} must hold labelled nodes; got node {unlabelled[0]}, which has no label.")
    return chosen
