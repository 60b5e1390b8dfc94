"""EASE and CopyEASE: definitions, new interactions, donors behind a score, and the sparse form."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import nodecopy
from nodecopy import Interactions, Jaccard, SameLabel, copying, datasets
from nodecopy._core.arrays import contains
from nodecopy._core.parallel import create_pool
from nodecopy.copying import donors as copying_donors
from nodecopy.errors import DataWarning, InputError
from nodecopy.recommend import EASE, CopyEASE, ItemKNN, algebra, ease, sparse_ridge
from nodecopy.recommend.algebra import copied_moments
from nodecopy.recommend.base import append_interactions
from nodecopy.recommend.ease import DonorSystem, default_donors, donor_matrix
from nodecopy.recommend.sparse_ridge import (
    largest_products,
    largest_sums,
    solve_neighbourhoods,
    solve_sparse,
    sparse_moments,
)
from tests.contracts.recommenders import tastes
from tests.recommend.test_algebra import ridge_without_itself

PLAIN: Any = {"low_pass": 0.0, "popularity_penalty": 0.0, "degree_exponent": 0.0}
UNIFORM: Any = {"user_donors": "uniform", "item_donors": "uniform"}


@pytest.mark.parametrize("precision", ["double", "single"])
def test_ease_is_ridge_regression_on_the_other_items(precision: str) -> None:
    log = tastes()
    A = log.matrix.toarray()
    weights = EASE(regularisation=3.0, precision=precision).fit(log).weights_
    np.testing.assert_allclose(weights, ridge_without_itself(A, A, 3.0), atol=1e-5)
    assert not np.diag(weights).any()


def test_user_weights() -> None:
    """Ridge regression with rows scaled by the roots of the weights; their sum over interactions is kept."""
    log = tastes()
    A, model = log.matrix.toarray(), EASE(regularisation=3.0, degree_exponent=0.5).fit(log)
    degrees = A.sum(axis=1)
    weights = np.divide(1, np.sqrt(degrees), out=np.zeros(len(A)), where=degrees > 0)
    weights *= degrees.sum() / (degrees @ weights)
    scaled = A * np.sqrt(weights)[:, None]
    np.testing.assert_allclose(model.weights_, ridge_without_itself(scaled, scaled, 3.0), atol=1e-5)


@pytest.mark.parametrize("model_class", [EASE, CopyEASE])
def test_penalties_by_popularity(model_class: type[EASE | CopyEASE]) -> None:
    """The lambda of an item grows with its popularity, and its scores are divided by a power of it."""
    log = Interactions(tastes().matrix.toarray() * (np.arange(24) != 3))
    counts = np.maximum(log.matrix.toarray().sum(axis=0), 1)
    p = counts / counts.mean()
    model = model_class(regularisation=3.0, regularisation_exponent=0.7, **PLAIN)
    moments = model.moments(log)
    K = np.linalg.inv(np.asarray(moments.M, np.float64) + np.diag(3.0 * p**0.7))
    B = K @ moments.C
    B -= K * (np.diag(B) / np.diag(K))
    np.testing.assert_allclose(model.solve(moments), B, atol=1e-5)
    plain = model.fit(log).weights_
    penalised = model.set_params(popularity_penalty=0.3).fit(log).weights_
    np.testing.assert_allclose(penalised, plain * p**-0.3, rtol=1e-5)


@pytest.mark.parametrize("model", [EASE(2.0), CopyEASE(regularisation=2.0, popularity_penalty=0.2)])
@pytest.mark.parametrize("rank", [2, 9])
def test_low_pass_filter(model: EASE | CopyEASE, rank: int, tmp_path: Path) -> None:
    """Against a dense decomposition; both terms have the same deviation; donors and files keep the sums."""
    log = Interactions(np.random.default_rng(0).random((15, 9)) < 0.5)
    A, options = log.matrix.toarray(), {"low_pass": 0.3, "low_pass_rank": rank}
    plain = model.set_params(low_pass=0.0).fit(log).weights_
    roots = np.sqrt(A.sum(axis=1)), np.sqrt(A.sum(axis=0))
    _, s, V_t = np.linalg.svd(A / np.outer(*roots), full_matrices=False)
    expected = (V_t[:rank].T * s[:rank]) @ V_t[:rank] * roots[1] / roots[1][:, None]
    expected *= 0.3 * (A @ plain).std() / (A @ expected).std()
    model.set_params(**options).fit(log)
    np.testing.assert_allclose(model.weights_ - plain, expected, atol=1e-5)
    np.testing.assert_allclose(np.asarray(model.singular_values_), s[:rank], atol=1e-5)
    explanation = model.explain(USER, ITEM, None)
    assert explanation.remainder == pytest.approx(0, abs=1e-5)
    assert explanation.score == pytest.approx(model.score([USER])[0, ITEM], abs=1e-5)
    model.set_params(n_neighbours=3).fit(log).save(tmp_path / "model.npz")
    loaded = nodecopy.load(tmp_path / "model.npz", mmap=True)
    np.testing.assert_array_equal(loaded.score(), model.score())
    np.testing.assert_allclose(loaded.explain(USER, ITEM, None).remainder, 0, atol=1e-5)
    own = (log.matrix @ model.weights_).toarray()
    assert (model.score_rows(log.matrix) - own).std() == pytest.approx(0.3 * own.std(), rel=1e-4)
    model.set_params(n_neighbours="auto")


@pytest.mark.parametrize("item_donors", [default_donors(), "uniform"])
def test_the_automatic_bonus_is_a_share_of_the_regression_on_the_rule(item_donors: Any) -> None:
    log = tastes()
    B = CopyEASE(item_donors=item_donors, item_bonus=0.0, **PLAIN).fit(log).weights_
    rule = donor_matrix(item_donors, Interactions(log.matrix.T))
    Q_t = (np.ones((24, 24)) - np.eye(24)) / 23 if rule is None else rule.toarray().T
    coefficient = np.linalg.lstsq(Q_t.reshape(-1, 1), B.ravel())[0].item()
    model = CopyEASE(item_donors=item_donors, **PLAIN).fit(log)
    assert model.item_bonus_ == pytest.approx(0.75 * coefficient, rel=1e-4)
    np.testing.assert_allclose(model.weights_, B + model.item_bonus_ * Q_t, atol=1e-5)


def test_special_cases_of_copy_ease() -> None:
    """EASE without copying; an empty diagonal; single precision; equal weights are the uniform rule."""
    log = tastes()
    plain = CopyEASE(0.0, 0.0, regularisation=7.0, item_bonus=0.0, **PLAIN).fit(log).weights_
    np.testing.assert_allclose(plain, EASE(regularisation=7.0).fit(log).weights_, atol=1e-5)
    double, single = (
        CopyEASE(item_bonus=0.0, low_pass=0.0, precision=name).fit(log) for name in ("double", "single")
    )
    assert not np.diag(double.weights_).any()
    np.testing.assert_allclose(single.weights_, double.weights_, atol=1e-4)
    rule = copying.Weighted(np.ones((log.n_users, log.n_users)) - np.eye(log.n_users))
    options: dict[str, Any] = {"item_share": 0.0, "item_bonus": 0.0, "regularisation": 5.0}
    weighted, uniform = (CopyEASE(user_donors=users, **options).fit(log) for users in (rule, "uniform"))
    np.testing.assert_allclose(weighted.weights_, uniform.weights_, atol=1e-5)
    first, second = CopyEASE(), CopyEASE()
    first.set_params(user_donors__exponent=1.0)
    assert (first.item_donors.exponent, second.user_donors.exponent) == (2.5, 2.5)


@pytest.mark.parametrize("n_neighbours", [None, 3])
def test_fits_in_a_pool_start_no_threads(n_neighbours: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    model, log = CopyEASE(n_neighbours=n_neighbours), datasets.load("library")
    expected = model.fit(log).score()
    monkeypatch.setattr(algebra, "MIN_COMPILED_PRODUCTS", -1)
    monkeypatch.setattr(copying_donors, "MIN_COMPILED_PRODUCTS", 0, raising=False)
    with create_pool(1) as pool:
        monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor.__init__", None)
        scores = pool.submit(lambda: model.fit(log).score()).result()
    np.testing.assert_allclose(scores, expected, atol=1e-6)


# New interactions: the weights are those of a fresh fit, but few users are computed again


def parts(log: Interactions, seed: int) -> list[Interactions]:
    """Return three parts of a log, the last of which have new users and items, without the empty ones."""
    draws = np.random.default_rng(seed)
    number = draws.choice(3, p=[0.6, 0.2, 0.2], size=log.n_interactions)
    number[np.isin(log.rows.row_numbers, [3, 7]) & (number < 1)] = 1
    number[np.isin(log.rows.indices, [2, 11]) & (number < 2)] = 2
    users, items, _ = log.table()
    return [Interactions.from_table(users[number == part], items[number == part]) for part in range(3)]


@pytest.mark.parametrize(
    "model",
    [
        EASE(5.0),
        EASE(5.0, degree_exponent=0.5),
        CopyEASE(regularisation=5.0),
        CopyEASE(0.3, 0.5, regularisation=5.0, degree_exponent=0.5, item_bonus=0.0),
        CopyEASE(**UNIFORM, regularisation=5.0, degree_exponent=0.5),
    ],
)
def test_partial_fits_equal_a_fresh_fit(model: EASE | CopyEASE) -> None:
    first, *others = parts(tastes(), 0)
    model.fit(first)
    total = first
    for part in others:
        total = append_interactions(total, part)
        model.partial_fit(part)
        fresh = type(model)(**model.get_params(deep=False)).fit(total)
        assert model.interactions_ == total == model.seen_
        np.testing.assert_allclose(model.weights_, fresh.weights_, atol=2e-5)
    assert (total.n_users, total.n_items) > (first.n_users, first.n_items)
    fresh = type(model)(**model.get_params(deep=False)).fit(append_interactions(first, others[1]))
    np.testing.assert_allclose(model.fit(first).partial_fit(others[1]).weights_, fresh.weights_, atol=2e-5)


def test_long_ids_take_little_memory() -> None:
    """All ids were padded to the longest one: 4.3 GB for an id of 100 kB."""
    names = [f"user {number}" for number in range(20_000)]
    model = EASE(1.0).fit(Interactions.from_table(names, ["tea", "jam"] * 10_000))
    tracemalloc.start()
    with pytest.raises(InputError, match="users must have at most 4096 characters; got 100000"):
        model.partial_fit(Interactions.from_table(["x" * 10**5], ["tea"]))
    with pytest.raises(InputError, match="ids of users must take at most 67108864 bytes"):
        model.partial_fit(Interactions.from_table(["x" * 4096], ["tea"]))
    with pytest.raises(InputError, match="must hold known ids; got str"):
        model.recommend([*names[:9], "x" * 4096], 1)
    assert contains(model.interactions_.user_ids, np.array([names[7], "x" * 4096])).tolist() == [True, False]
    model.partial_fit(Interactions.from_table(["x" * 100], ["tea"]))
    assert tracemalloc.get_traced_memory()[1] < 2**26
    tracemalloc.stop()
    assert model.recommend(["x" * 100, names[0]], 1)[0].tolist() == [["jam"], ["jam"]]


def test_partial_fits_of_changed_models() -> None:
    """Parameters may change in between, seen interactions stay seen, and the sparse form is fitted again."""
    first, second, _ = parts(tastes(), 1)
    model = CopyEASE(regularisation=5.0).fit(first).partial_fit(second)
    model.set_params(degree_exponent=0.7, user_share=0.0, item_share=0.6).partial_fit(second)
    fresh = CopyEASE(0.0, 0.6, regularisation=5.0, degree_exponent=0.7).fit(model.interactions_)
    np.testing.assert_allclose(model.weights_, fresh.weights_, atol=1e-5)
    seen = Interactions(np.ones((first.n_users, first.n_items)), first.user_ids, first.item_ids)
    linear = EASE(5.0).fit(first, seen=seen).partial_fit(second)
    assert linear.seen_ == append_interactions(seen.binary(), second)
    total = append_interactions(first, second)
    sparse_model = CopyEASE(n_neighbours=5).partial_fit(first).partial_fit(second)
    fresh = CopyEASE(n_neighbours=5).fit(total)
    np.testing.assert_array_equal(sparse_model.weights_.toarray(), fresh.weights_.toarray())
    with pytest.raises(InputError, match="ids of users must hold strings, as in training; got 1"):
        model.partial_fit(Interactions.from_table([1], ["tea"]))
    with pytest.raises(InputError, match="interactions must hold at least one"):
        model.partial_fit(tastes().difference(tastes()))


def test_partial_fits_where_donors_or_donor_rules_change() -> None:
    """New interactions of a donor of the first four users, then new donors of other users."""
    log = Interactions(np.kron(np.eye(2), 1 - np.eye(4)))
    model = CopyEASE(0.5, user_donors=SameLabel([0] * 4 + [1] * 4)).fit(log)
    for labels in ([0] * 4 + [1] * 4, [0] * 4 + [1, 1, 2, 2]):
        model.set_params(user_donors=SameLabel(labels)).partial_fit(Interactions.from_table([0], [0]))
        fresh = CopyEASE(**model.get_params(deep=False)).fit(model.interactions_)
        np.testing.assert_allclose(model.weights_, fresh.weights_, atol=1e-6)


# The donors behind a score, against the equations with dense matrices and a loop over donors

USER, ITEM, REGULARISATION = 3, 2, 2.0


def random_log(seed: int = 0) -> Interactions:
    matrix = np.random.default_rng(seed).random((15, 9)) < 0.4
    matrix[USER, :2] = True
    matrix[USER, ITEM] = False
    return Interactions(matrix)


def loop_over_donors(A: Any, P: Any, Q: Any, w: Any, q1: float, q2: float, bonus: float) -> Any:
    """Return the parts of users and items by the definition of the copied input."""
    n_users, n_items = A.shape
    M, C, _ = copied_moments(sparse.csr_array(A), sparse.csr_array(P), sparse.csr_array(Q), q1, q2, w)
    others = [item for item in range(n_items) if item != ITEM]
    inverse = np.linalg.inv(M[np.ix_(others, others)] + REGULARISATION * np.eye(len(others)))
    t = np.zeros(n_items)
    t[others] = inverse @ A[USER, others]
    users, items = np.zeros(n_users), bonus * Q[ITEM] * A[USER]
    for user in np.flatnonzero(A[:, ITEM]):
        users[user] += w[user] * (1 - q1 - q2) * (A[user] @ t)
        for donor in range(n_users):
            users[donor] += w[user] * q1 * P[user, donor] * (A[donor] @ t)
        for item in others:
            for donor in range(n_items):
                items[donor] += w[user] * q2 * Q[item, donor] * A[user, donor] * t[item]
    score = A[USER, others] @ inverse @ C[others, ITEM] + bonus * Q[ITEM] @ A[USER]
    assert users.sum() + items.sum() == pytest.approx(score, rel=1e-6)
    return users, items


@pytest.mark.parametrize(("q1", "q2", "bonus"), [(0.0, 0.0, 0.0), (0.3, 0.5, 0.2), (0.6, 0.0, 0.1)])
def test_parts_of_donors_against_a_loop(q1: float, q2: float, bonus: float) -> None:
    log = random_log()
    rules: list[Any] = []
    for matrix in (log.matrix, log.matrix.T):
        donors = donor_matrix(Jaccard(include_self=False, max_donors=4), Interactions(matrix))
        rules.append(donors.toarray())
    w = np.random.default_rng(1).random(log.n_users) + 0.5
    P, Q = map(sparse.csr_array, rules)
    system = DonorSystem(log.matrix, REGULARISATION, w, P, Q, q1, q2, bonus)
    users, items = system.parts(log.matrix[[USER]].indices, ITEM)
    expected = loop_over_donors(log.matrix.toarray(), rules[0], rules[1], w, q1, q2, bonus)
    np.testing.assert_allclose(users, expected[0], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(items, expected[1], rtol=1e-6, atol=1e-9)


def test_explanations_of_the_sparse_form() -> None:
    """With three neighbours nothing is left out of the moments of nine items, so that nothing remains."""
    options: Any = {"regularisation": REGULARISATION, "n_neighbours": 3}
    by_popularity: Any = {"regularisation_exponent": 0.5, "popularity_penalty": 0.3}
    for model in (EASE(**options), CopyEASE(**options), CopyEASE(**options, item_bonus=0.1, **by_popularity)):
        explanation = model.fit(random_log()).explain(USER, ITEM, None)
        assert explanation.score == pytest.approx(model.score([USER])[0, ITEM], abs=1e-6)
        assert explanation.remainder == pytest.approx(0, abs=1e-6)


def test_explanations_follow_parameters_and_interactions() -> None:
    model = CopyEASE(regularisation=REGULARISATION).fit(random_log())
    first = model.explain(USER, ITEM, None)
    model.set_params(user_share=0.1)
    with pytest.raises(InputError, match="parameters of CopyEASE must be as in fit"):
        model.explain(USER, ITEM)
    model.fit(random_log())
    assert model.explain(USER, ITEM, None).remainder == pytest.approx(0, abs=1e-6)
    model.set_params(regularisation_exponent=0.5, popularity_penalty=0.3).fit(random_log())
    assert model.explain(USER, ITEM, None).remainder == pytest.approx(0, abs=1e-6)
    model.partial_fit(random_log(1))
    explanation = model.explain(USER, ITEM, None)
    assert explanation.remainder == pytest.approx(0, abs=1e-6)
    assert explanation.score != pytest.approx(first.score)
    model.user_share = None  # type: ignore[assignment]
    with pytest.raises(InputError, match="user_share of CopyEASE must be"):
        model.explain(USER, ITEM)


def test_equations_that_are_not_solved_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ease, "MAX_STEPS", 1)
    model = EASE(REGULARISATION).fit(random_log())
    with pytest.warns(DataWarning, match="conjugate gradients did not converge in 1 steps"):
        explanation = model.explain(USER, ITEM)
    assert abs(explanation.remainder) > 1e-3


@pytest.mark.parametrize(
    ("model", "name"), [(CopyEASE(), "item_bonus_"), (CopyEASE(), "user_share"), (ItemKNN(), "shrinkage")]
)
def test_numbers_of_saved_models_are_checked(model: Any, name: str, tmp_path: Path) -> None:
    setattr(model.fit(random_log()), name, "many")
    model.save(tmp_path / "model.npz")
    with pytest.raises(InputError, match=f"{name} of {type(model).__name__} must be"):
        nodecopy.load(tmp_path / "model.npz")


# The sparse form: exact where nothing is left out, and the regression on its neighbours where it is


@given(st.integers(0, 2**32), st.integers(1, 9), st.sampled_from([2, 100]))
def test_largest_products(seed: int, n_largest: int, rows_per_task: int) -> None:
    """Against sorted dense products; small integers make ties."""
    draws = np.random.default_rng(seed)
    left = draws.integers(0, 3, (7, 5)) * (draws.random((7, 5)) < 0.5)
    right = draws.integers(0, 3, (5, 8)) * (draws.random((5, 8)) < 0.5)
    importance = draws.integers(1, 3, 8).astype(float)
    zeros = sparse.csr_array(np.ones((5, 8)))  # stored ones and zeros
    zeros.data = right.ravel().astype(float)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_ridge, "ROWS_PER_TASK", rows_per_task)
        result = largest_products(sparse.csr_array(left), zeros, n_largest, importance)
    for row, ours in zip(left @ right, result.toarray(), strict=True):
        order = sorted(np.flatnonzero(row).tolist(), key=lambda j: (-row[j] * importance[j], j))
        assert ours.tolist() == [row[j] if j in order[:n_largest] else 0 for j in range(8)]
    assert result.has_sorted_indices


@pytest.mark.parametrize("has_diagonal", [True, False])
@pytest.mark.parametrize("rows_per_task", [2, 100])
def test_largest_sums(rows_per_task: int, has_diagonal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_ridge, "ROWS_PER_TASK", rows_per_task)
    draws = np.random.default_rng(0)
    first, second = (draws.integers(0, 4, (7, 7)) * (draws.random((7, 7)) < 0.5) for _ in range(2))
    importance = draws.random(7)
    terms = [(0.5, sparse.csr_array(first)), (2.0, sparse.csr_array(second))]
    result = largest_sums(terms, 3, importance, has_diagonal)
    total = (0.5 * first + 2 * second) * (1 if has_diagonal else 1 - np.eye(7))
    for row, ours in zip(total, result.toarray(), strict=True):
        best = np.argsort(-row * importance, kind="stable")[:3]
        assert ours.tolist() == [row[j] if j in best else 0 for j in range(7)]


@pytest.mark.parametrize("systems_per_task", [1, 2, 64])
def test_solve_neighbourhoods(systems_per_task: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_ridge, "SYSTEMS_PER_TASK", systems_per_task)
    draws = np.random.default_rng(0)
    half = draws.random((6, 6))
    M = half @ half.T
    targets = draws.random((6, 6)) * (draws.random((6, 6)) < 0.5)
    targets[2] = 0.0
    C_t = sparse.csr_array(targets.astype(np.float32))
    half = np.triu(M) - np.diag(np.diag(M)) / 2  # M is the sum of it and its transpose
    M_csr = sparse.csr_array(half.astype(np.float32))
    penalties = np.linspace(0.5, 1.0, 6, dtype=np.float32)
    solution = solve_neighbourhoods(M_csr, C_t, penalties, 1, 5)
    for row in range(1, 5):
        nodes = np.flatnonzero(targets[row])
        system = M[np.ix_(nodes, nodes)] + np.diag(penalties[nodes])
        ours, solution = solution[: len(nodes)], solution[len(nodes) :]
        np.testing.assert_allclose(ours, np.linalg.solve(system, targets[row, nodes]), rtol=1e-4)
    assert not len(solution)
    assert not len(solve_neighbourhoods(M_csr, C_t, penalties, 2, 3))


@pytest.mark.parametrize(
    "model",
    [
        EASE(3.0, degree_exponent=0.5),
        CopyEASE(0.3, 0.5, regularisation=3.0, degree_exponent=0.5, item_bonus=0.0),
        CopyEASE(regularisation=3.0, item_bonus=0.1, regularisation_exponent=0.5, popularity_penalty=0.2),
    ],
)
def test_all_neighbours_give_the_exact_solution(model: EASE | CopyEASE) -> None:
    log = Interactions(np.random.default_rng(0).random((60, 12)) < 0.5)  # all pairs of items co-occur
    weights = model.set_params(n_neighbours=None).fit(log).weights_
    model.set_params(n_neighbours=log.n_items).fit(log)
    np.testing.assert_allclose(model.score_rows(sparse.eye_array(12, format="csr")), weights, atol=1e-4)


def test_weights_are_regressions_on_the_neighbours() -> None:
    log, rule = tastes(), default_donors()
    P, Q = (donor_matrix(rule, side) for side in (log, Interactions(log.matrix.T)))
    M, C, _ = copied_moments(log.matrix, P, Q, 0.4, 0.4)
    B = solve_sparse(*sparse_moments(log.matrix, P, Q, 0.4, 0.4, None, log.n_items), 2.0, 5).toarray()
    gains = C**2 / (np.diag(M) + 2.0)[:, None]
    np.fill_diagonal(gains, 0.0)
    for item in range(log.n_items):
        neighbours = np.flatnonzero(B[:, item])
        assert set(neighbours) == set(np.argsort(-gains[:, item])[:5] if gains[:, item].any() else [])
        system = M[np.ix_(neighbours, neighbours)] + 2.0 * np.eye(len(neighbours))
        expected = np.linalg.solve(system, C[neighbours, item])
        np.testing.assert_allclose(B[neighbours, item], expected, rtol=1e-3)


def test_accuracy_with_few_neighbours() -> None:
    """On the library, 15 of 80 items predict nearly as well as all of them."""
    split = datasets.interaction_split(datasets.load("library"), rng=0)
    exact, few = (
        CopyEASE(n_neighbours=n).fit(split.train).evaluate(split.test, metrics=["recall@20"])["recall@20"]
        for n in (None, 15)
    )
    assert few > exact - 0.01


def test_many_items_take_the_sparse_form(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setattr(algebra, "max_items", lambda device: 23)
    model = CopyEASE().fit(tastes())
    assert caplog.text.count("CopyEASE predicts each item from 100 others") == 1
    assert model.n_neighbours_ == 100
    exact = CopyEASE(n_neighbours=None).fit(tastes())
    assert isinstance(exact.weights_, np.ndarray)
    assert exact.n_neighbours_ is None
    model.save(tmp_path / "model.npz")
    loaded = nodecopy.load(tmp_path / "model.npz")
    assert np.array_equal(loaded.recommend(k=3)[0], model.recommend(k=3)[0])
    assert len(CopyEASE(n_neighbours=10).tune(tastes(), k=5, budget=4, rng=0).tuning_) == 4


@pytest.mark.parametrize(("n_items", "n_neighbours"), [(10**5, 100), (10**6, 40), (10**9, 10)])
def test_neighbours_by_memory(n_items: int, n_neighbours: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(algebra, "usable_memory", lambda: 16e9)
    assert CopyEASE().sparse_neighbours(n_items) == EASE().sparse_neighbours(n_items) == n_neighbours
    assert CopyEASE(n_neighbours=70).sparse_neighbours(n_items) == 70
