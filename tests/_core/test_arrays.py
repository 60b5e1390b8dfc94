"""Arrays: rows, ids, and crafted sparse matrices, which are refused before compiled code reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nodecopy import (
    Balanced,
    Graph,
    Interactions,
    NearestNeighbours,
    NodeCopying,
    SameLabel,
    Weighted,
    as_graph,
    as_interactions,
    read_graph,
    read_interactions,
    statistics,
)
from nodecopy._core.arrays import Rows, as_csr, check_ids, deduplicate, find_positions, largest_entries
from nodecopy.classify import GraphClassifier
from nodecopy.copying.distributions import DonorDistribution, DonorLists, DonorRows
from nodecopy.errors import InputError
from nodecopy.features.neighbours import NeighbourSearch
from nodecopy.features.scaling import FeatureScaling
from tests.contracts.wrong_arguments import crafted_matrices
from tests.strategies import matrices


@settings(max_examples=60)
@given(matrices((5, 4)))
def test_there_and_back(matrix: sparse.csr_array) -> None:
    rows = Rows.from_matrix(matrix, "m")
    assert rows.csr.toarray().tolist() == matrix.toarray().tolist()
    assert (rows.n_rows, rows.n_columns, rows.n_entries) == (5, 4, matrix.nnz)
    assert rows.row_numbers.tolist() == rows.csr.nonzero()[0].tolist()
    assert rows == Rows.from_matrix(matrix.toarray(), "m")
    assert (rows.weights is None) == bool((matrix.data == 1).all())
    for i in range(5):
        columns = rows.indices[rows.indptr[i] : rows.indptr[i + 1]]
        assert (np.diff(columns) > 0).all()


@given(matrices((5, 6)), st.integers(1, 7), st.integers(1, 3))
def test_largest_entries(matrix: sparse.csr_array, top: int, levels: int) -> None:
    """Against sorting; few distinct values make many ties, and rows come in any order."""
    matrix.data = 1.0 + matrix.indices % levels
    shuffled = matrix.copy()
    for start, end in zip(shuffled.indptr[:-1], shuffled.indptr[1:], strict=True):
        shuffled.indices[start:end] = shuffled.indices[start:end][::-1].copy()
        shuffled.data[start:end] = shuffled.data[start:end][::-1].copy()
    shuffled.has_sorted_indices = False
    found = largest_entries(shuffled, top).toarray()
    for row, values in zip(found, matrix.toarray(), strict=True):
        chosen = sorted(np.flatnonzero(values), key=lambda column, v=values: (-v[column], column))[:top]  # type: ignore[misc]
        assert row.tolist() == [value if column in chosen else 0 for column, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3, -1], np.array([3, -1], np.int64)),
        (["b", "a"], np.array(["b", "a"])),
        (np.array([1, 2], np.uint8), np.array([1, 2], np.int64)),
        (np.array(["x", 7], object), np.array(["x", "7"])),
        (["x", 7, np.str_("y")], np.array(["x", "7", "y"])),
        ([], np.zeros(0, np.int64)),
    ],
)
def test_ids_become_integers_or_strings(values: Any, expected: Any) -> None:
    ids = check_ids(values, "ids")
    assert ids.dtype.kind == expected.dtype.kind
    assert ids.tolist() == expected.tolist()
    assert not ids.flags.writeable


@given(st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, min_size=1), st.data())
def test_positions_invert_indexing(ids: list[int], data: st.DataObject) -> None:
    values = data.draw(st.lists(st.sampled_from(ids)))
    positions = find_positions(np.array(values, np.int64), np.array(ids), "values")
    assert [ids[position] for position in positions] == values


ENTRIES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 9), st.integers(0, 3)))


@given(ENTRIES, st.booleans())
def test_of_repeated_entries_the_largest_or_the_one_of_highest_rank_counts(
    entries: list[tuple[int, int, int, int]], ranked: bool
) -> None:
    first, second, values, rank = np.array(entries, np.int64).reshape(-1, 4).T
    expected = np.zeros((3, 4))
    best: dict[tuple[int, int], Any] = {}
    for position, (i, j, value, order) in enumerate(entries):
        key = (order, position) if ranked else (value, position)
        if (i, j) not in best or key >= best[i, j]:
            best[i, j], expected[i, j] = key, value
    matrix = deduplicate(first, second, values.astype(float), (3, 4), rank=rank if ranked else None)
    assert matrix.toarray().tolist() == expected.tolist()
    assert matrix.nnz == len(best)


@pytest.mark.parametrize("max_compared", [0, 8])
@pytest.mark.parametrize("ids", [["b", "a", "c"], [20, 10, 30]])
def test_few_and_many_ids(ids: list[Any], max_compared: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodecopy._core.arrays.MAX_COMPARED", max_compared)
    names = np.array(ids)
    assert find_positions(names[[2, 0, 2]], names, "items").tolist() == [2, 0, 2]
    unknown = np.array([ids[1], ids[0] * 5])
    with pytest.raises(InputError, match=f"items must hold known ids; got {ids[0] * 5!r}"):
        find_positions(unknown, names, "items")
    with pytest.raises(InputError, match="items must hold known ids"):
        find_positions(unknown, names[:0], "items")


FORMATS = ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]
DENSE = np.array([[0, 2.5, 0, 1], [1, 0, 0, 0], [0, 0, 0, 3], [0, 4, 0, 0]])


VALID = ("8 bits", "big-endian columns", "few columns", "small integers", "NaN", "data [0 1]")


def crafted() -> dict[str, Any]:
    """Return invalid matrices of shape (2, 2)."""
    unsigned, early = sparse.csr_array(np.eye(2)), sparse.csc_array(np.eye(2))
    unsigned.indices = np.array([0, 2**64 - 1], np.uint64)
    early.indptr = np.array([0, 0, 1])
    uneven = sparse.lil_array(np.eye(2))
    uneven.data[1] = [1.0] * 1000
    dok = sparse.dok_array(np.eye(2))
    vars(dok)["_dict"][(10**6, 0)] = 1.0
    far: Any = sparse.dia_array((np.ones((1, 2)), [0]), shape=(2, 2))
    far.offsets = np.array([-(2**63)])
    matrices = {name: matrix for name, matrix in crafted_matrices((2, 2)) if not name.endswith(VALID)}
    return matrices | {"unsigned": unsigned, "early": early, "uneven": uneven, "dok": dok, "far": far}


def entries(matrix: Any) -> dict[str, Any]:
    """Return every way in which a caller's sparse matrix enters."""
    pair = Graph([[0, 1], [1, 0]], [[0.0], [1.0]], [0, 1])
    return {
        "graph": lambda: Graph(matrix),
        "directed": lambda: Graph(matrix, directed=True),
        "replace": lambda: pair.replace(adjacency=matrix),
        "features": lambda: Graph(np.eye(2), matrix),
        "interactions": lambda: Interactions(matrix),
        "as_graph": lambda: as_graph(matrix),
        "as_interactions": lambda: as_interactions(matrix),
        "statistics": lambda: statistics(matrix),
        "fit": lambda: NodeCopying(SameLabel([0, 0])).fit(matrix),
        "weighted": lambda: NodeCopying(Weighted(matrix)).fit(pair),
        "balanced": lambda: NodeCopying(Balanced(Weighted(matrix))).fit(pair),
        "embeddings": lambda: NodeCopying(NearestNeighbours(1, embeddings=matrix)).fit(pair),
        "search": lambda: NeighbourSearch(matrix),
        "scaling": lambda: FeatureScaling.fit(matrix),
        "donor rows": lambda: DonorRows(matrix, np.ones(2)),
        "similarity": lambda: DonorRows.from_similarity(matrix),
        "table": lambda: GraphClassifier().fit(matrix, [0, 1]),
    }


@pytest.mark.parametrize("matrix", crafted().values(), ids=crafted())
def test_every_entry_refuses_crafted_matrices(matrix: Any) -> None:
    for enter in entries(matrix).values():
        with pytest.raises(InputError):
            enter()


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "u1", "?"])
def test_valid_matrices_of_any_format_stay_what_they_are(kind: str, dtype: str) -> None:
    dense = DENSE.astype(dtype)
    matrix = getattr(sparse, f"{kind}_array")(dense)
    assert (as_csr(matrix, "matrix").toarray() == dense).all()
    assert np.array_equal(Graph(matrix, directed=True).adjacency.toarray(), dense.astype(np.float64))


@pytest.mark.parametrize("dtype", [">f8", "f2", "g"])
def test_diagonals_of_any_type_stay_what_they_are(dtype: str) -> None:
    matrix: Any = sparse.dia_array(DENSE)
    matrix.data = matrix.data.astype(dtype)
    assert np.array_equal(as_csr(matrix, "matrix").toarray(), DENSE)


def test_sums_of_duplicates_do_not_overflow() -> None:
    twice = np.array([128, 128], np.uint8)
    coo = sparse.coo_array((twice, ([0, 0], [1, 1])), shape=(2, 2))
    csr = sparse.csr_array((twice, [1, 1], [0, 2, 2]), shape=(2, 2))
    for matrix in (coo, csr, csr.tocsc()):
        assert Graph(matrix).adjacency.toarray().tolist() == [[0, 256], [256, 0]]
    assert Graph(np.eye(2), coo).features.toarray().tolist() == [[0, 256], [0, 0]]  # type: ignore[union-attr]
    large = sparse.coo_array((np.full(4, 2**62), ([0] * 4, [1] * 4)), shape=(2, 2))
    for matrix in (large, sparse.csr_array((large.data, [1] * 4, [0, 4, 4]), shape=(2, 2))):
        assert Graph(matrix, directed=True).adjacency.toarray().tolist() == [[0, 2.0**64], [0, 0]]


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="the type is double")
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_numbers_that_no_double_holds_are_refused(kind: Any) -> None:
    matrix = kind(np.full((2, 2), np.longdouble("1e1300")))
    for enter in (lambda: Graph(matrix), lambda: Graph(np.eye(2), matrix), lambda: Interactions(matrix)):
        with pytest.raises(InputError, match="must hold finite numbers"):
            enter()


@pytest.mark.parametrize(
    "lists", [([0, 0], [0, 10**7, 0], []), ([0, 0], [0, 2], [0, 7]), ([0, 9], [0, 1], [0]), ([0, 0], [], [])]
)
def test_lists_of_donors_are_checked(lists: Any) -> None:
    with pytest.raises(InputError):
        DonorLists(*map(np.array, lists))


class Foreign(DonorDistribution):
    """A distribution of a user, which returns whatever it was given."""

    n_nodes = 2

    def __init__(self, donors: Any) -> None:
        self.donors = donors

    def draw(self, uniforms: Any, keep: Any, *, compiled: bool = False) -> Any:
        return self.donors

    def mean_rows(self, matrix: Any) -> Any:
        return matrix, np.arange(2)

    def match_probabilities(self, group_of: Any, wanted: Any) -> Any:
        return np.ones(2)


class OwnRule:
    """A donor rule of a user."""

    def __init__(self, returned: Any) -> None:
        self.returned = returned

    def fit(self, data: Any) -> Any:
        return self.returned


@pytest.mark.parametrize("donors", [[0, 10**7], [-5, 0], [0], [0.5, 1.0], None])
def test_donors_of_own_rules_are_checked(donors: Any) -> None:
    model = NodeCopying(OwnRule(Foreign(np.array(donors)))).fit(Graph([[0, 1], [1, 0]]))
    with pytest.raises(InputError, match="donors"):
        model.sample(rng=0)


@pytest.mark.parametrize("returned", [None, np.eye(2), DonorLists.from_groups(np.zeros(5, int))])
def test_own_rules_return_distributions_of_all_nodes(returned: Any) -> None:
    for rule in (OwnRule(returned), Balanced(OwnRule(returned))):
        with pytest.raises(InputError, match="must return"):
            NodeCopying(rule).fit(Graph([[0, 1], [1, 0]]))


@pytest.mark.parametrize("name", [name for name in crafted() if not name.endswith(("None", " 5", "[0 1]"))])
def test_readers_refuse_crafted_matrices(name: str, tmp_path: Path) -> None:
    path, matrix = tmp_path / "c.npz", crafted()[name]
    if matrix.format in ("csr", "csc", "bsr"):
        parts = {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}
    elif matrix.format == "coo":
        parts = {"data": matrix.data, "row": matrix.coords[0], "col": matrix.coords[1]}
    elif matrix.format == "dia":
        parts = {"data": matrix.data, "offsets": matrix.offsets}
    else:
        pytest.skip("SciPy writes no such file")
    np.savez(path, format=matrix.format.encode(), shape=matrix.shape, **parts)
    for read in (read_graph, read_interactions):
        with pytest.raises(InputError):
            read(path)
    if matrix.format == "csr":
        np.savez(path, directed=True, weights=matrix.data, indices=matrix.indices, indptr=matrix.indptr)
        with pytest.raises(InputError):
            read_graph(path)
        features = {f"features_{name}": part for name, part in parts.items()} | {"features_shape": (2, 2)}
        np.savez(path, directed=True, indices=[], indptr=[0, 0, 0], **features)
        with pytest.raises(InputError):
            read_graph(path)


@pytest.mark.parametrize("cumulative", [["x", "y"], np.ones(2, np.float32), [np.nan, 1.0], [1.0]])
def test_cumulative_probabilities_are_checked(cumulative: Any) -> None:
    with pytest.raises(InputError, match="cumulative of DonorRows must"):
        DonorRows(sparse.csr_array(np.eye(2)), np.array(cumulative))
