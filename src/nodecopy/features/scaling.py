"""How features and edge weights are scaled before networks see them; the choice follows from the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nodecopy._core.arrays import Array, Floats, as_matrix, native, unit_rows
from nodecopy._core.checks import check_choice, check_finite, check_numbers, check_real, check_vector, show
from nodecopy._core.messages import log_decision, warn_about_data
from nodecopy.errors import InputError
from nodecopy.graph import Graph

FEATURE_SCALINGS = ("auto", "unit", "rows", "standardise", "none", "binary")
WEIGHT_SCALINGS = ("auto", "raw", "log", "binary")
MIN_ZEROS = 0.5  # more than this share of word counts are zero
MIN_SPARSE_ZEROS = 0.8  # smallest share of zeros among sparse word counts
MAX_COLUMN_SHARE = 0.25  # no word has more than this share of all counts
MAX_SCALE_RATIO = 20.0  # largest ratio of a column's mean nonzero value to that of the median column
COMMON_COLUMNS = 0.99  # quantile of columns for which that holds: a few words may be very frequent
MIN_COLUMNS = 20  # fewer columns of counts are no words, unless all values are zero or one
MAX_DEVIATION = 2.0  # standard deviations per mean above which weights are heavy-tailed
OUTLIER_SHARE = 0.9999  # of the variance of a column, above which a single value is an outlier
ROUNDING = 1e-12  # a column whose standard deviation is below this share of its largest value is constant


@dataclass(frozen=True, eq=False)
class FeatureScaling:
    """A fitted scaling of features, the same for every graph that it is applied to.

    Parameters
    ----------
    kind
        ``"unit"``: each node's features are scaled to a length (Euclidean norm) of one. ``"rows"``: to a sum
        of one. ``"standardise"``: each column is scaled to mean 0 and deviation 1. ``"binary"``: present or
        not. ``"none"``: as they are.
    means, deviations
        Of the columns, with ``"standardise"``. Without means, columns are not centred. A deviation of 0
        stands for a constant column, which becomes zero.
    """

    kind: str
    means: Floats | None = None
    deviations: Floats | None = None

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind of FeatureScaling", FEATURE_SCALINGS[1:])
        for name, value in (("means", self.means), ("deviations", self.deviations)):
            if value is not None:
                numbers = check_numbers(check_vector(value, name), name).astype(np.float64)
                check_finite(numbers, name)
                object.__setattr__(self, name, numbers)
        if self.kind == "standardise" and self.deviations is None:
            raise InputError("deviations of FeatureScaling", "must be given to standardise; got None.")

    @classmethod
    def fit(
        cls,
        features: Any,
        kind: str = "auto",
        *,
        encoder: Any = None,
        counts: str = "unit",
        name: str = "features",
        purpose: str = "",
    ) -> FeatureScaling:
        """Return the scaling of a matrix of features.

        ``"auto"`` is ``"unit"`` for word counts, ``"standardise"`` for anything else; the choice is logged.
        Word counts, also weighted by TF-IDF, are not negative and mostly zero. Unless all are zero or one,
        they have at least 20 columns, no column has more than a quarter of their sum, and the mean nonzero
        value of 99 % of columns is at most 20 times that of the median column. No column of them was one-hot
        encoded or imputed. A sparse matrix that is mostly zeros is not centred, so that it stays sparse.

        ``counts`` is what ``"auto"`` is for word counts; ``name`` is the caller's parameter for ``kind``, if
        any, and ``purpose`` what features are scaled for, in messages.
        """
        check_choice(kind, name or "kind", FEATURE_SCALINGS)
        matrix = check_matrix(features, "features")
        if kind == "auto":
            reason = explain_no_counts(matrix, encoder)
            kind = "standardise" if reason else counts
            _log_feature_scaling(kind, reason, matrix, name, purpose)
        if kind != "standardise":
            return cls(kind)
        means, deviations, largest = _column_moments(matrix)
        deviations = np.where(deviations > ROUNDING * largest, deviations, 0.0)
        if len(deviations) and not deviations.any():
            log_decision(f"features: all columns are constant ({len(deviations)}) and uninformative.")
        _warn_about_outliers(matrix, means, deviations)
        stays_sparse = bool(sparse.issparse(matrix)) and matrix.nnz < MIN_ZEROS * np.prod(matrix.shape)
        return cls(kind, None if stays_sparse else means, deviations)

    def apply_to_rows(self, rows: Any) -> Any:
        """Return what :meth:`apply` returns, as an array if the rows are one."""
        scaled = self.apply(rows)
        return scaled.toarray() if isinstance(rows, np.ndarray) else scaled

    def apply(self, features: Any) -> sparse.csr_array:
        """Return features, scaled and in single precision."""
        features = check_matrix(features, "features")
        for numbers in (self.means, self.deviations):
            if numbers is not None and len(numbers) != features.shape[1]:
                allowed = f"{len(numbers)} columns, as in fit"
                raise InputError("features", f"must have {allowed}; got {features.shape[1]}.")
        if self.kind == "standardise":
            with np.errstate(over="ignore"):
                matrix = self._standardise(features)
            check_finite(matrix.data, "standardised features in single precision")
            return matrix
        with np.errstate(over="ignore"):
            matrix = sparse.csr_array(features).astype(np.float32)
            total = np.asarray(abs(matrix).sum(axis=1), np.float32)
        if not np.isfinite(total).all():
            raise InputError(
                "sums of features in single precision must be finite; got inf. Standardise them."
            )
        if self.kind == "binary":
            matrix.data = (matrix.data != 0).astype(np.float32)
        if self.kind in ("rows", "unit"):
            # A node without features keeps its row of zeros.
            scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
            matrix.data = matrix.data * np.repeat(scale, np.diff(matrix.indptr))
        # Squares of rows with a sum of one do not overflow.
        return unit_rows(matrix) if self.kind == "unit" else matrix

    def _standardise(self, features: Any) -> sparse.csr_array:
        assert self.deviations is not None
        scale = np.divide(1.0, self.deviations, out=np.zeros_like(self.deviations), where=self.deviations > 0)
        if self.means is not None:
            return sparse.csr_array(((as_dense(features) - self.means) * scale).astype(np.float32))
        matrix = sparse.csr_array(features)
        values = (matrix.data * scale[matrix.indices]).astype(np.float32)
        return sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)


@dataclass(frozen=True, eq=False)
class WeightScaling:
    """A fitted scaling of edge weights, the same for every graph that it is applied to.

    Parameters
    ----------
    kind
        ``"raw"``: as they are. ``"log"``: log(1 + weight / unit). ``"binary"``: all one.
    unit
        The smallest weight, with ``"log"``; for counts, it is usually 1.
    """

    kind: str
    unit: float = 1.0

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind of WeightScaling", WEIGHT_SCALINGS)
        if not check_real(self.unit, "unit of WeightScaling", low=0.0):
            raise InputError("unit of WeightScaling", f"must be above zero; got {show(self.unit)}.")

    @classmethod
    def fit(cls, adjacency: sparse.csr_array, kind: str = "auto") -> WeightScaling:
        """Return the scaling of the weights of a graph.

        ``"auto"`` is ``"log"`` for heavy-tailed weights, whose standard deviation is more than twice their
        mean, and ``"raw"`` for others; the choice is logged for weighted graphs.
        """
        check_choice(kind, "weights", WEIGHT_SCALINGS)
        if kind == "auto":
            kind = _choose_weight_scaling(adjacency.data)
        return cls(kind, float(adjacency.data.min()) if kind == "log" and adjacency.nnz else 1.0)

    def apply(self, adjacency: sparse.csr_array) -> sparse.csr_array:
        """Return the adjacency with scaled weights; with ``"raw"`` the adjacency itself."""
        if self.kind == "raw":
            with np.errstate(over="ignore"):
                total = adjacency.data.sum(dtype=np.float64)
            if not total < np.finfo(np.float32).max:
                got = "got inf. Use weights='log', which takes logarithms"
                raise InputError(f"sums of edge weights in single precision must be finite; {got}.")
            return adjacency
        weights = np.ones(adjacency.nnz)
        if self.kind == "log":  # log(1 + weight / unit), where the ratio may be too large for a float
            weights = np.logaddexp(0.0, np.log(adjacency.data, dtype=np.float64) - np.log(self.unit))
        entries = weights.astype(adjacency.dtype), adjacency.indices, adjacency.indptr
        return sparse.csr_array(entries, shape=adjacency.shape)


def check_matrix(values: Any, name: str) -> Any:
    """Return a matrix of numbers, dense or CSR, or raise an error that names the parameter."""
    matrix = as_matrix(values, name)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        got = f"shape {matrix.shape} of {matrix.dtype}"
        raise InputError(name, f"must be a matrix of numbers, one row per node; got {got}.")
    return matrix if sparse.issparse(matrix) else native(matrix)


def scale_features(graph: Graph, kind: str = "auto", *, name: str = "", purpose: str = "") -> Any:
    """Return the features by which nodes are compared: standardised, unless they are word counts."""
    features: Any = graph.features
    encoder = graph.feature_encoder
    scaling = FeatureScaling.fit(features, kind, encoder=encoder, counts="none", name=name, purpose=purpose)
    return features if scaling.kind == "none" else scaling.apply_to_rows(features)


def explain_no_counts(matrix: Any, encoder: Any = None) -> str:
    """Return why features are not word counts (see :meth:`FeatureScaling.fit`), or an empty string."""
    values, share = stored_values(matrix), share_of_zeros(matrix)
    if encoder is not None and (encoder.categories_ or encoder.incomplete_):
        return "some columns were one-hot encoded or imputed"
    if (values < 0).any():
        return "some values are negative"
    if share <= MIN_ZEROS:
        return f"only {share:.0%} of them are zero"
    if np.isin(values, (0, 1)).all():
        return ""
    if matrix.shape[1] < MIN_COLUMNS:
        return f"{matrix.shape[1]} columns are too few for words"
    unit = max(1.0, float(values.max(initial=0.0)))  # keeps sums from overflowing
    sums = np.asarray((matrix / unit).sum(axis=0), np.float64)
    largest = sums.max() / max(sums.sum(), np.finfo(float).tiny)
    if largest > MAX_COLUMN_SHARE:
        return f"one column has {largest:.0%} of their sum"
    means = sums[sums > 0] / np.asarray((matrix != 0).sum(axis=0))[sums > 0]
    ratio = np.quantile(means, COMMON_COLUMNS) / np.median(means)
    if ratio > MAX_SCALE_RATIO:
        return f"the values of a hundredth of columns are {ratio:.3g} times those of the median column"
    return ""


def _log_feature_scaling(kind: str, reason: str, matrix: Any, name: str, purpose: str) -> None:
    decision = {
        "standardise": "each column is standardised",
        "unit": "each node's row is scaled to a length of one",
        "rows": "each node's row is scaled to a sum of one",
        "none": "used as they are",
        "binary": "each value other than zero becomes one",
    }[kind]
    usual = (
        f"as usual for word counts, since {share_of_zeros(matrix):.0%} of them are zero and none is negative"
    )
    since = f"since they are not word counts ({reason})" if reason else usual
    log_decision(f"features: {decision}{purpose and ' ' + purpose}, {since}.", *([name] if name else []))


def share_of_zeros(matrix: Any) -> float:
    """Return the share of zeros among the entries of a matrix."""
    return 1.0 - np.count_nonzero(stored_values(matrix)) / max(1, int(np.prod(matrix.shape)))


def is_sparse_counts(counts: Any) -> bool:
    """Return whether nearly all word counts are zero."""
    return share_of_zeros(counts) >= MIN_SPARSE_ZEROS


def _choose_weight_scaling(weights: Array) -> str:
    if not len(weights) or (weights == weights[0]).all():
        return "raw"
    unit = float(weights.max())  # keeps squares from overflowing
    ratio = float(np.std(weights / unit, dtype=np.float64) / np.mean(weights / unit, dtype=np.float64))
    deviation = f"their standard deviation is {ratio:.1f} times their mean"
    kind, decision = "raw", f"as they are, since {deviation}, at most {MAX_DEVIATION:g}"
    if ratio > MAX_DEVIATION:
        kind = "log"
        decision = f"log(1 + weight / smallest weight), since they are heavy-tailed: {deviation}"
    log_decision(f"weights: {decision}.", "weights")
    return kind


def _column_moments(matrix: Any) -> tuple[Floats, ...]:
    """Return the mean, the standard deviation and the largest absolute value of each column."""
    if isinstance(matrix, np.ndarray):
        largest = abs(matrix).max(axis=0, initial=0.0).astype(np.float64)
        dense = matrix / np.where(largest > 0, largest, 1.0)
        return dense.mean(axis=0) * largest, dense.std(axis=0) * largest, largest
    (n_rows, n_columns), stored = matrix.shape, sparse.coo_array(matrix)
    column, values = stored.coords[1], stored.data.astype(np.float64)
    largest = np.zeros(n_columns)
    np.maximum.at(largest, column, abs(values))
    values = values / np.where(largest > 0, largest, 1.0)[column]
    means = np.bincount(column, values, minlength=n_columns) / n_rows
    zeros = (n_rows - np.bincount(column, minlength=n_columns)) * means**2
    squares = np.bincount(column, (values - means[column]) ** 2, minlength=n_columns)
    return means * largest, np.sqrt((squares + zeros) / n_rows) * largest, largest


def _warn_about_outliers(matrix: Any, means: Floats, deviations: Floats) -> None:
    """Warn of a value with nearly all the variance of its column, whose others standardising makes equal."""
    limit, n_rows = np.sqrt(OUTLIER_SHARE * max(matrix.shape[0] - 1, 1)) * deviations, matrix.shape[0]
    if isinstance(matrix, np.ndarray):
        columns = np.flatnonzero((abs(matrix - means) > limit).any(axis=0))
    else:
        of_entry = sparse.coo_array(matrix).coords[1]
        columns = np.unique(of_entry[abs(matrix.data - means[of_entry]) > limit[of_entry]])
    part = sparse.csc_array(matrix[:, columns])
    for number, column in enumerate(columns.tolist()):
        entries = slice(*part.indptr[number : number + 2].tolist())
        rows, values = part.indices[entries], part.data[entries]
        place = int(abs(values - means[column]).argmax())
        others = np.append(np.delete(values, place), [0.0] * (len(values) < n_rows))
        if np.ptp(others) and abs(values[place] - means[column]) > limit[column]:  # else a zero is
            warn_about_data(
                f"features: the value {values[place]:g} of node {rows[place]} in column {column} (from 0 on) "
                "is so large that all others of the column are nearly equal beside it. Correct it, or take "
                "the logarithm of the column."
            )
            return


def stored_values(matrix: Any) -> Array:
    """Return the stored numbers of a dense or sparse matrix."""
    return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.data)


def as_dense(matrix: Any) -> Array:
    """Return a dense or sparse matrix as an array."""
    return matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix.toarray())
