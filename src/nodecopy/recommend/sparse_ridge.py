"""The sparse form of linear recommenders: each item is predicted from its most important items.

For 10^5 items and more, dense items x items matrices do not fit into memory. Here every matrix keeps the
most important entries of each row, and each item is predicted by a ridge regression on ``n_neighbours``
others, a small dense system.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from nodecopy._core.arrays import Array, Singles, index_dtype, keep_entries
from nodecopy._core.kernels import njit
from nodecopy._core.parallel import map_on_cores
from nodecopy.recommend.algebra import count_users, row_blocks, scaled_transpose

ROWS_PER_TASK = 2048
SYSTEMS_PER_TASK = 64
ROWS_PER_PRODUCT = 128
ENTRIES_PER_NEIGHBOUR = 4  # in each row of the moments


def sparse_moments(
    matrix: sparse.csr_array, P: Any, Q: Any, q1: float, q2: float, weights: Any, n_neighbours: int
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return S and C' of :func:`.copied_moments`, where M = S + S', with the largest entries of each row.

    The importance of an entry (i, j) is its value divided by the root of one plus the number of users of j.
    Terms of sums are deleted: the peak is about eight matrices with ``n_entries`` entries per row.
    """
    n_entries = ENTRIES_PER_NEIGHBOUR * n_neighbours
    q0 = 1 - q1 - q2
    A = sparse.csr_array(matrix.astype(np.float32))
    w = np.ones(A.shape[0]) if weights is None else weights
    importance = 1 / np.sqrt(1.0 + count_users(A))

    def product(left: Any, right: Any) -> sparse.csr_array:
        return largest_products(sparse.csr_array(left), sparse.csr_array(right), n_entries, importance)

    def total(*terms: tuple[float, sparse.csr_array], has_diagonal: bool = True) -> sparse.csr_array:
        return largest_sums(terms, 2 * n_entries, importance, has_diagonal)

    weighted = scaled_transpose(A, w)
    G, counts = product(weighted, A), np.asarray(weighted.sum(axis=1))
    diagonal, S_terms, C_terms = q0 * counts, [(q0 * q0 / 2, G)], [(q0, G)]
    if q1 and P is not None:
        by_donor = scaled_transpose(A, P.T @ w)
        diagonal = diagonal + q1 * np.asarray(by_donor.sum(axis=1))
        H = product(weighted, product(P, A))
        C_terms += [(q1, H)]
        S_terms += [(q0 * q1, H), (q1 * q1 / 2, product(by_donor, A))]
        del H
    has_items = bool(q2 and Q is not None)
    S = total(*S_terms, has_diagonal=has_items)
    del S_terms
    C_t = total(*C_terms, has_diagonal=has_items)
    del C_terms
    if Q is not None and has_items:
        diagonal = diagonal + q2 * (Q @ counts)
        QG = product(Q, G)
        del G
        GQ_t = sparse.csr_array(QG.T)
        del QG
        C_t = total((1.0, C_t), (q2 / 2, GQ_t))
        S = total((1.0, S), (q2, product(Q, C_t)), has_diagonal=False)
        C_t = total((1.0, C_t), (q2 / 2, GQ_t), has_diagonal=False)
        del GQ_t
    return sparse.csr_array(S + sparse.diags_array((diagonal / 2).astype(np.float32), format="csr")), C_t


def solve_sparse(
    S: sparse.csr_array, C_t: sparse.csr_array, regularisation: Any, n_neighbours: int
) -> sparse.csr_array:
    """Return the weights B, whose column j holds the regression of item j on its neighbours."""
    penalties = np.broadcast_to(np.asarray(regularisation, np.float32), (S.shape[0],))
    # The gain of a regression on the item i alone is C_ij^2 / (M_ii + lambda).
    importance = 1 / np.sqrt(2 * S.diagonal() + penalties)
    targets = largest_sums([(1.0, C_t)], n_neighbours, importance)

    def solve(rows: slice) -> Singles:
        return solve_neighbourhoods(S, targets, penalties, rows.start, rows.stop)

    blocks = row_blocks(targets.shape[0], ROWS_PER_TASK)
    data = np.concatenate(list(map_on_cores(solve, blocks)))
    B_t = sparse.csr_array((data, targets.indices, targets.indptr), shape=targets.shape)
    return sparse.csr_array(B_t.T)


def largest_products(
    left: sparse.csr_array, right: sparse.csr_array, n_largest: int, importance: Array
) -> sparse.csr_array:
    """Return ``left @ right``, in single precision, with the most important entries of each row.

    The importance of an entry is its value, not negative, times that of its column; ties go to the lowest.
    """
    shape = left.shape[0], right.shape[1]
    left, right = (part.astype(np.float32, copy=False) for part in (left, right))
    return _select_by_rows(lambda rows: (left[rows], right), shape, n_largest, importance)


def largest_sums(
    terms: Sequence[tuple[float, sparse.csr_array]],
    n_largest: int,
    importance: Array,
    has_diagonal: bool = True,
) -> sparse.csr_array:
    """Return the most important entries of each row of a sum of scaled matrices."""

    def add(rows: slice) -> tuple[Any, Any]:
        block: Any = sum(np.float32(scale) * matrix[rows] for scale, matrix in terms)
        if not has_diagonal:
            row = np.repeat(np.arange(rows.start, rows.stop), np.diff(block.indptr))
            block = keep_entries(block, row != block.indices)
        return sparse.eye_array(block.shape[0], dtype=np.float32, format="csr"), block

    return _select_by_rows(add, terms[0][1].shape, n_largest, importance)


def _select_by_rows(
    factors: Callable[[slice], tuple[Any, Any]], shape: tuple[int, int], n_largest: int, importance: Any
) -> sparse.csr_array:
    """Return the most important entries of a product, given the factors of a block of rows."""
    n_largest, importance = min(n_largest, shape[1]), importance.astype(np.float32)

    def select(rows: slice) -> Any:
        csr = [part for matrix in factors(rows) for part in (matrix.indptr, matrix.indices, matrix.data)]
        return _largest_products(*csr, shape[1], n_largest, importance)

    # The blocks are written into the arrays of the result, so that they are in memory only once.
    indptr = np.zeros(shape[0] + 1, np.int64)
    indices, data = (np.empty(shape[0] * n_largest, dtype) for dtype in (np.int32, np.float32))
    row = filled = 0
    for counts, columns, values in map_on_cores(select, row_blocks(shape[0], ROWS_PER_TASK)):
        indptr[row + 1 : row + 1 + len(counts)] = filled + np.cumsum(counts)
        indices[filled : filled + len(columns)], data[filled : filled + len(columns)] = columns, values
        row, filled = row + len(counts), filled + len(columns)
    indptr = indptr.astype(index_dtype(filled))  # SciPy would widen the columns too
    return sparse.csr_array((data[:filled], indices[:filled], indptr), shape=shape)


def solve_neighbourhoods(
    S: sparse.csr_array, C_t: sparse.csr_array, penalties: Singles, start: int, stop: int
) -> Singles:
    """Return, like the data of each row of C', the solution of S + S' + penalties at its columns."""
    all_sizes = np.diff(C_t.indptr[start : stop + 1])
    width = int(all_sizes.max(initial=0))
    position, parts = np.full(S.shape[0], -1, np.int32), [np.zeros(0, np.float32)]
    for block in row_blocks(len(all_sizes), SYSTEMS_PER_TASK):
        sizes = all_sizes[block]
        # Rows of zeros are filled up with ones on the diagonal: systems of one size are solved at once.
        systems = np.zeros((len(sizes), width, width), np.float32)
        targets = np.zeros((len(sizes), width, 1), np.float32)
        csr = S.indptr, S.indices, S.data, C_t.indptr, C_t.indices, C_t.data
        _fill_systems(*csr, penalties, start + block.start, position, systems, targets)
        solutions = np.linalg.solve(systems, targets)[:, :, 0]
        parts.append(solutions[np.arange(width) < sizes[:, None]])
    return np.concatenate(parts)


def add_sparse_product(total: Array, left: sparse.csr_array, right: sparse.csr_array) -> None:
    """Add the product of two sparse matrices to a dense one."""
    csr = left.indptr, left.indices, left.data, right.indptr, right.indices, right.data
    blocks = row_blocks(len(total), ROWS_PER_PRODUCT)
    list(map_on_cores(lambda rows: _add_rows(*csr, rows.start, rows.stop, total), blocks))


@njit(cache=True, nogil=True)
def _add_rows(left_indptr, left_indices, left_data, indptr, indices, data, start, stop, total):
    for row in range(start, stop):
        out = total[row]
        for e in range(left_indptr[row], left_indptr[row + 1]):
            middle, factor = left_indices[e], left_data[e]
            for f in range(indptr[middle], indptr[middle + 1]):
                out[indices[f]] += factor * data[f]


@njit(cache=True, nogil=True)
def _largest_products(
    left_indptr, left_indices, left_data, indptr, indices, data, n_columns, n_largest, importance
):
    """Return the counts, columns and values of the most important entries of each row of a product."""
    n_rows = len(left_indptr) - 1
    total = np.zeros(n_columns, np.float32)
    touched, weighted = np.empty(n_columns, np.int32), np.empty(n_columns, np.float32)
    best = np.empty(n_largest, np.int32)
    counts = np.zeros(n_rows, np.int64)
    columns = np.empty(n_rows * n_largest, np.int32)
    values = np.empty(n_rows * n_largest, np.float32)
    filled = 0
    for row in range(n_rows):
        n_touched = 0
        for e in range(left_indptr[row], left_indptr[row + 1]):
            middle, factor = left_indices[e], left_data[e]
            for f in range(indptr[middle], indptr[middle + 1]):
                column, value = indices[f], factor * data[f]
                if total[column] == 0 and value > 0:
                    touched[n_touched] = column
                    n_touched += 1
                total[column] += value
        threshold, n_ties = np.float32(0.0), 0
        for t in range(n_touched):
            weighted[t] = total[touched[t]] * importance[touched[t]]
        if n_touched > n_largest:
            threshold = np.partition(weighted[:n_touched], n_touched - n_largest)[n_touched - n_largest]
        n_best = 0
        for t in range(n_touched):
            if weighted[t] > threshold:
                best[n_best] = touched[t]
                n_best += 1
            elif weighted[t] == threshold:  # moves to the front, where it overwrites what was seen
                touched[n_ties] = touched[t]
                n_ties += 1
            else:
                total[touched[t]] = 0
        ties = np.sort(touched[:n_ties])
        for t in range(n_ties):
            if n_best < n_largest:
                best[n_best] = ties[t]
                n_best += 1
            else:
                total[ties[t]] = 0
        for column in np.sort(best[:n_best]):
            columns[filled] = column
            values[filled] = total[column]
            filled += 1
            total[column] = 0
        counts[row] = n_best
    return counts, columns[:filled].copy(), values[:filled].copy()


@njit(cache=True, nogil=True)
def _fill_systems(
    indptr, indices, data, t_indptr, t_indices, t_data, penalties, first, position, systems, targets
):
    """Write the entries of S + S' and the targets; unused rows get a one on the diagonal."""
    n_systems, width, _ = systems.shape
    for number in range(n_systems):
        begin, end = t_indptr[first + number], t_indptr[first + number + 1]
        for e in range(begin, end):
            position[t_indices[e]] = e - begin
            targets[number, e - begin, 0] = t_data[e]
        for e in range(begin, end):
            item = t_indices[e]
            for f in range(indptr[item], indptr[item + 1]):
                column = position[indices[f]]
                if column >= 0:
                    systems[number, e - begin, column] += data[f]
                    systems[number, column, e - begin] += data[f]
            systems[number, e - begin, e - begin] += penalties[item]
        for e in range(begin, end):
            position[t_indices[e]] = -1
        for column in range(end - begin, width):
            systems[number, column, column] = 1.0
