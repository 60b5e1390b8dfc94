"""A classifier of scikit-learn: a graph of similar rows, and a classifier of its nodes."""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
from scipy import sparse

from nodecopy._core.arrays import Array, Bools, Floats, as_csr
from nodecopy._core.checks import check_integer, check_type, is_missing, show
from nodecopy._core.imports import from_name, import_optional
from nodecopy._core.messages import log_decision
from nodecopy.classify import CLASSIFIERS
from nodecopy.classify.base import Classifier, Prediction, Uncertainty
from nodecopy.classify.networks import APPNP
from nodecopy.errors import InputError
from nodecopy.features.graphs import graph_from_features
from nodecopy.features.neighbours import NeighbourSearch
from nodecopy.features.scaling import FeatureScaling
from nodecopy.graph import UNLABELLED, Graph

base: Any = import_optional("sklearn.base", "GraphClassifier")
validation: Any = import_optional("sklearn.utils.validation", "GraphClassifier")
multiclass: Any = import_optional("sklearn.utils.multiclass", "GraphClassifier")
MAX_SEED = 2**31 - 1


class GraphClassifier(base.ClassifierMixin, base.BaseEstimator):  # type: ignore[misc]
    """Classify the rows of a table, of which few have labels, as nodes of their nearest-neighbour graph.

    An estimator of scikit-learn (1.6 or later). The rows given to ``fit`` are the nodes of a graph on which a
    classifier of nodecopy is trained. New rows are connected to their nearest fitted rows.

    Parameters
    ----------
    classifier
        The classifier of nodes, by default ``APPNP(n_epochs=100, features=scale)``. Any other scales columns
        by its own parameter ``features``.
    n_neighbours
        As in :func:`~nodecopy.graph_from_features`, also for new rows, which are connected to fitted ones.
    scale
        ``"standardise"`` (default), ``"auto"``, ``"unit"``, ``"rows"``, ``"binary"`` or ``"none"``: how
        features are scaled before distances are measured, and for the default classifier.
    random_state
        Seed of the networks: an integer, a ``RandomState`` or ``None``.

    Attributes
    ----------
    classes_
        The classes.
    transduction_
        The predicted class of each fitted row.
    classifier_, graph_, scaling_
        The fitted classifier, the graph of the rows, and the scaling for distances.
    n_features_in_, feature_names_in_
        Number of columns, and their names if the table has names.

    Notes
    -----
    Edges lead from new to fitted rows only, so that the prediction of a row does not depend on the other new
    rows. (It does with ``BayesianGCN`` and ``SelfTraining``, whose dropout masks depend on the position, and
    with ``DFNet``, which normalises over the graph.) A row that equals a fitted row has its edges, so that
    ``predict`` of the fitted rows is ``transduction_``, up to duplicates.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from nodecopy.classify import GraphClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> few = np.full(1500, -1)
    >>> few[:100] = y[:100]  # the other rows are unlabelled
    >>> model = GraphClassifier(random_state=0).fit(X[:1500], few)
    >>> bool((model.transduction_ == y[:1500]).mean() > 0.9), model.score(X[1500:], y[1500:]) > 0.85
    (True, True)
    """

    def __init__(
        self,
        classifier: Classifier | str | None = None,
        *,
        n_neighbours: int = 10,
        scale: str = "standardise",
        random_state: Any = None,
    ) -> None:
        self.classifier = classifier
        self.n_neighbours = n_neighbours
        self.scale = scale
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train on a table of which some rows have labels.

        Parameters
        ----------
        X
            Array, SciPy sparse matrix or data frame of numbers, one row per node.
        y
            One label per row. Unlabelled are -1 among numbers, the empty string among strings, and ``None``
            or NaN among either.
        """
        matrix = self._check_table(X, reset=True)
        labels, is_labelled = split_labels(y)
        validation.check_consistent_length(matrix, is_labelled)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if (n := len(self.classes_)) < 2:
            raise InputError("y", f"must hold labels of at least two classes; got {n} class.")
        every = np.full(len(is_labelled), UNLABELLED)
        every[is_labelled] = codes
        self.scaling_ = FeatureScaling.fit(matrix, self.scale, name="scale")
        self.graph_ = self._build_graph(matrix).replace(labels=every)
        kinds = (int, np.integer, np.random.RandomState, type(None))
        allowed = "an integer, a RandomState of NumPy or None"
        check_type(self.random_state, kinds, "random_state of GraphClassifier", allowed)
        try:
            seed = validation.check_random_state(self.random_state).randint(MAX_SEED)
        except (ValueError, TypeError) as error:
            raise InputError(f"random_state of GraphClassifier: {error}.") from error
        self.classifier_ = self._build_classifier().fit(self.graph_, rng=seed)
        self.transduction_ = self.classes_[self.classifier_.predict()]
        return self

    def predict(self, X: Any) -> Array:
        """Return the likeliest class of each row."""
        codes = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class (columns: ``classes_``) for each row."""
        p = self._predict_rows(X).probabilities.astype(np.float64)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def uncertainty(self, X: Any) -> Uncertainty:
        """Return the entropy of each prediction, split into noise and disagreement between samples."""
        return self._predict_rows(X).uncertainty()

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy on the rows that have a label; the others are left out."""
        labels, is_labelled = split_labels(y)
        if not len(labels):
            raise InputError("y", "must hold the label of at least one row; got none.")
        predicted = self.predict(X)
        validation.check_consistent_length(predicted, is_labelled)
        return float((predicted[is_labelled] == labels).mean())

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn: sparse tables are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_table(self, X: Any, *, reset: bool) -> Any:
        X = as_csr(X, "X") if sparse.issparse(X) else X
        return validation.validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2 if reset else 1
        )

    def _build_classifier(self) -> Classifier:
        if self.classifier is None:
            return APPNP(n_epochs=100, features=self.scaling_.kind)
        classifier = from_name(self.classifier, CLASSIFIERS, "classifier of GraphClassifier")
        if not isinstance(classifier, Classifier):
            got = show(classifier)
            raise InputError("classifier of GraphClassifier", f"must be one such as GCN(); got {got}.")
        return cast(Classifier, base.clone(classifier))

    def _build_graph(self, matrix: Any) -> Graph:
        n = matrix.shape[0]
        n_neighbours = check_integer(self.n_neighbours, "n_neighbours of GraphClassifier", low=1)
        if n_neighbours >= n:
            log_decision(f"n_neighbours: {n - 1} instead of {n_neighbours}, since there are {n} rows.")
        points = self.scaling_.apply_to_rows(matrix)
        return graph_from_features(points, n_neighbours=min(n_neighbours, n - 1)).replace(features=matrix)

    def _predict_rows(self, X: Any) -> Prediction:
        validation.check_is_fitted(self)
        rows = self._check_table(X, reset=False)
        prediction = self.classifier_.evaluate_graph(self._attach(rows))
        n = self.graph_.n_nodes
        return Prediction(prediction.probabilities[n:], prediction.mean_entropy[n:])

    def _attach(self, rows: Any) -> Graph:
        """Return the fitted graph with further nodes, each with edges to its nearest fitted nodes."""
        fitted: Any = self.graph_.features
        adjacency, n, n_new = self.graph_.adjacency, self.graph_.n_nodes, rows.shape[0]
        if sparse.issparse(rows) != sparse.issparse(fitted):
            rows = sparse.csr_array(rows) if sparse.issparse(fitted) else rows.toarray()
        points, queries = (self.scaling_.apply_to_rows(part) for part in (fitted, rows))
        search = NeighbourSearch(points, queries=queries, queries_are_nodes=False)
        n_neighbours = min(self.n_neighbours, n)
        nearest = search.nearest(n_neighbours)[1].reshape(n_new, n_neighbours)
        is_equal = np.asarray(abs(fitted[nearest[:, 0]] - rows).sum(axis=1)).ravel() == 0
        new = np.flatnonzero(~is_equal)
        weight = adjacency.data.mean() if adjacency.nnz else 1.0
        ends = np.repeat(new, n_neighbours), nearest[new].ravel()
        edges = sparse.csr_array((np.full(len(ends[0]), weight), ends), shape=(n_new, n))
        ends = np.flatnonzero(is_equal), nearest[is_equal, 0]
        copies = sparse.csr_array((np.ones(len(ends[0])), ends), shape=(n_new, n))
        stack = sparse.vstack if sparse.issparse(fitted) else np.vstack
        empty = sparse.csr_array((n + n_new, n_new))
        enlarged = sparse.hstack([sparse.vstack([adjacency, edges + copies @ adjacency]), empty])
        return Graph(enlarged, stack([fitted, rows]), directed=True)


def split_labels(y: Any) -> tuple[Array, Bools]:
    """Return the labels of the labelled rows, and which rows these are."""
    if y is None:
        raise InputError("fit of GraphClassifier requires y to be passed, but the target y is None.")
    if sparse.issparse(y):  # whose arrays scikit-learn reads unchecked
        raise InputError("y", f"must be an array with a label per row; got {show(y)}.")
    array = validation.column_or_1d(y, warn=True)
    if array.dtype.kind == "O":
        is_unlabelled = np.array([_is_unlabelled(value) for value in array.tolist()], bool)
        if len({isinstance(value, str) for value in array[~is_unlabelled].tolist()}) > 1:
            raise InputError("y", "must hold numbers or strings; got both.")
        labels = np.array(array[~is_unlabelled].tolist())
    else:
        is_unlabelled = np.zeros(len(array), bool)
        if array.dtype.kind in "iuf":
            is_unlabelled = (array == UNLABELLED) | (array != array)
        elif array.dtype.kind == "U":
            is_unlabelled = array == ""
        labels = array[~is_unlabelled]
    if labels.dtype.kind == "U" and "-1" in labels:
        raise InputError("y", "must mark unlabelled rows by '' or None among strings; got '-1'.")
    if labels.dtype.kind == "f":
        validation.assert_all_finite(labels, input_name="y")
    if len(labels):
        multiclass.check_classification_targets(labels)
    return labels, ~is_unlabelled


def _is_unlabelled(value: Any) -> bool:
    return is_missing(value) or value == "" or (not isinstance(value, str) and value == UNLABELLED)
