"""The contract of graph models, and streams of samples."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.random import SeedSequence

from nodecopy._core.arrays import check_row_data
from nodecopy._core.checks import check_integer, check_type, type_name
from nodecopy._core.estimator import Saveable
from nodecopy._core.parallel import sample_stream
from nodecopy._core.random import Rng, child, seed_sequence
from nodecopy.errors import InputError, NotFittedError
from nodecopy.graph import Graph
from nodecopy.interactions import Interactions

Data = TypeVar("Data", Graph, Interactions)


class GraphModel(Saveable, ABC, Generic[Data]):
    """A random graph model: fitted to one observed graph, it samples graphs with the same nodes.

    A subclass writes :meth:`fit`, which ends by setting ``graph_``, and :meth:`draw`. Its constructor only
    stores its arguments. Parameters, streams of samples, ``save`` and ``load`` follow.

    Attributes
    ----------
    graph_
        The graph that the model was fitted to.

    Examples
    --------
    A model that permutes the nodes of the observed graph:

    >>> import numpy as np
    >>> from nodecopy import GraphModel, datasets
    >>> class Permuted(GraphModel):
    ...     def fit(self, graph, *, rng=None):
    ...         self.graph_ = graph
    ...         return self
    ...     def draw(self, seed):
    ...         order = np.random.default_rng(seed).permutation(self.graph_.n_nodes)
    ...         return self.graph_.replace(adjacency=self.graph_.adjacency[order][:, order])
    >>> Permuted().fit(datasets.load("karate")).sample(rng=0).n_edges
    78
    """

    graph_: Data

    @abstractmethod
    def fit(self, graph: Any, *, rng: Rng = None) -> Self:
        """Fit the model to a graph; models that draw nothing while they are fitted ignore ``rng``."""

    @abstractmethod
    def draw(self, seed: SeedSequence) -> Data:
        """Return the sample of a seed: the same seed always gives the same sample."""

    def sample(self, *, rng: Rng = None) -> Data:
        """Return one sample, the first of :meth:`sample_many` with the same ``rng``."""
        return next(self.sample_many(1, rng=rng))

    def sample_many(self, n: int, *, rng: Rng = None, workers: int = 1) -> Iterator[Data]:
        """Return an iterator over ``n`` samples; sample number s depends on the seed and s alone.

        ``workers`` threads draw samples ahead of the caller, faster on graphs with 10^5 entries and more.
        """
        self.check_fitted()
        check_integer(n, "n of sample_many", low=0, high=math.inf)
        check_integer(workers, "workers of sample_many", low=1)
        seed = seed_sequence(rng)
        return sample_stream(lambda number: self._checked_draw(child(seed, number)), n, workers)

    def _checked_draw(self, seed: SeedSequence) -> Data:
        sample, observed, name = self.draw(seed), self.graph_, f"draw of {type(self).__name__}"
        kind = Graph if isinstance(observed, Graph) else Interactions
        if not isinstance(sample, kind):
            raise InputError(name, f"must return a {kind.__name__}; got {type_name(sample)}.")
        is_alike = getattr(sample, "directed", None) == getattr(observed, "directed", None)
        if not (is_alike and _same_ids(sample, observed)):
            raise InputError(name, f"must return the nodes and directions of {observed!r}; got {sample!r}.")
        return sample

    def set_state(self, state: dict[str, Any]) -> None:
        """Take over what :meth:`get_state` returned, and check that its parts fit each other."""
        if not state:  # a part of another object, which fits copies of it
            return
        super().set_state(state)
        check_row_data(self.graph_, "graph_")
        self._check_state()

    def _check_state(self) -> None:
        """Check the fitted attributes of a file, or compute them again from the observed graph."""

    def check_fitted(self) -> Data:
        """Return the observed graph, or raise :class:`~nodecopy.errors.NotFittedError`."""
        if not hasattr(self, "graph_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit(graph) first.")
        return self.graph_


def _same_ids(sample: Any, observed: Any) -> bool:
    """Return whether two graphs or tables have the same ids, mostly the same arrays."""
    stored = ("_node_ids", "user_ids", "item_ids")
    if all(vars(sample).get(name) is vars(observed).get(name) for name in stored):
        rows, others = sample.rows, observed.rows
        return (rows.n_rows, rows.n_columns) == (others.n_rows, others.n_columns)
    names = ["node_ids"] if isinstance(observed, Graph) else ["user_ids", "item_ids"]
    return all(np.array_equal(getattr(sample, name), getattr(observed, name)) for name in names)


def check_graph_model(model: Any, name: str) -> GraphModel[Any]:
    """Return ``model`` if it is a graph model, otherwise raise an error that names the parameter."""
    allowed = "a graph model such as NodeCopying(SameLabel())"
    return check_type(model, GraphModel, name, allowed)  # type: ignore[no-any-return]
