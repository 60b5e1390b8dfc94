"""Headlines, and the sections of predictions, recommendations and an attacked node."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit

from nodecopy import Graph, compare, datasets
from nodecopy.classify import GCN
from nodecopy.defend import CopyingDefence
from nodecopy.links import LinkPredictor
from nodecopy.metrics.ranking import Evaluation
from nodecopy.recommend import CopyEASE
from nodecopy.recommend.ease import default_donors, donor_matrix
from nodecopy.report import page, sections
from nodecopy.report.sections import (
    MAX_ATTACKED,
    MAX_DEGREE,
    MIN_CURVE_NODES,
    PREFERRED_DEGREE,
    HeldOutPredictions,
    accuracy_interval,
    attack_and_correct,
    join_trials,
    recommendations_section,
    summarise_evaluation,
)
from tests.report import examples

PATH, TRIANGLE = Graph.from_edges([0, 1], [1, 2]), Graph.from_edges([0, 1, 2], [1, 2, 0])


def summary(name: str, accuracy: float, half: float, **values: Any) -> dict[str, Any]:
    interval = [accuracy - half, accuracy + half]
    given = {"n_nodes": 1000, "n_splits": 1, "majority": 0.3, "has_learned": True}
    return {"name": name, "accuracy": accuracy, "interval": interval} | given | values


def test_statistics_within_the_range_of_samples() -> None:
    same = compare(TRIANGLE, [TRIANGLE, TRIANGLE])
    n = sum(row.p_value >= 0 for row in same if row.name not in ("n_nodes", "edge_overlap"))
    assert page.statistics_headline({"a": same}) == (f"The 2 samples keep all {n} statistics.")


def test_statistics_outside_the_range_are_named() -> None:
    other = compare(TRIANGLE, [PATH, PATH])
    sentence = page.statistics_headline({"a": other})
    assert "triangles are 0 instead of 1" in sentence
    assert sentence.endswith(" others differ.")
    two = page.statistics_headline({"a": other, "b": compare(TRIANGLE, [TRIANGLE])})
    assert two.startswith("The 2 samples by a keep ")
    assert " The sample by b keeps " in two


def test_classification() -> None:
    gcn, ours = summary("GCN", 0.78, 0.03), summary("self-training", 0.82, 0.028)
    assert page.classification_headline([gcn, ours]) == (
        "Self-training is right on 82 ± 3 % of 1,000 held-out nodes; GCN on 78 ± 3 %."
    )
    assert "1,000 held-out nodes in 6 splits." in page.classification_headline([ours | {"n_splits": 6}])
    assert page.classification_headline([]) == "No label is held out, so the accuracy is unknown."


def test_a_model_that_did_not_learn() -> None:
    bad = summary("self-training", 0.45, 0.12, majority=0.41, has_learned=False, n_nodes=62)
    sentence = page.classification_headline([bad])
    assert sentence.startswith("The model did not learn: self-training is right on 45 ± 12 % of 62 held-out")
    assert "than the 41 % of" in sentence


def test_attacks() -> None:
    classes = ["a", "b"]
    stages = [[0.9, 0.1], [0.6, 0.4], [0.95, 0.05]]
    kept = page.attack_headline(classes, 0, stages, 1)
    assert kept.startswith("1 flipped edge does not change the prediction a (90 % before, 60 % after).")
    assert kept.endswith("keep it (95 %).")
    failed = page.attack_headline(classes, 0, [[0.9, 0.1], [0.1, 0.9], [0.2, 0.8]], 4)
    assert failed.endswith("from a to b. Copied neighbours do not correct it: they give b.")
    evidence = [[0.9, 0.1], [0.1, 0.9], [0.2, 0.8], [0.7, 0.3]]
    assert page.attack_headline(classes, 0, evidence, 4).endswith("restores it (70 %).")
    assert page.attack_headline(classes, 1, evidence, 4).endswith("does not correct it: it gives a.")


def test_verdicts_are_counted() -> None:
    sentence = page.tables_headline(["level", "above", "below", "below", "ahead"])
    assert sentence.startswith(
        "Of 5 results with published numbers, 1 are level with them, 1 ahead, 0 behind"
    )
    assert "and 3 statistics differ" in sentence


def evaluation(n: int, accuracy: float, n_splits: int = 1) -> HeldOutPredictions:
    """Two classes; the share ``accuracy`` of the nodes of each split is right, the most certain ones."""
    is_correct = np.arange(n) < accuracy * n
    p = np.where(is_correct, np.linspace(0.95, 0.7, n), 0.4)
    codes = np.zeros(n, np.int64)
    codes[::2] = 1
    probabilities = np.where(codes[:, None] == [0, 1], p[:, None], 1 - p[:, None])
    parts = probabilities, codes, 1 - probabilities.max(axis=1), np.zeros(n, np.int64)
    whole = HeldOutPredictions(*(np.concatenate([part] * n_splits) for part in parts))
    return whole._replace(splits=np.repeat(np.arange(n_splits), n))


@pytest.mark.parametrize(("n_correct", "n"), [(0, 5), (5, 5), (8, 10), (45, 60)])
def test_wilson_intervals_are_those_of_scipy(n_correct: int, n: int) -> None:
    from scipy.stats import binomtest

    expected = binomtest(n_correct, n).proportion_ci(method="wilson")
    assert accuracy_interval([n_correct], [n]) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_intervals_cover_the_accuracy() -> None:
    """Exact over the binomial distribution: the mean coverage of Wilson's interval is near 95 %."""
    n, coverages = 20, []
    for p in np.linspace(0.05, 0.95, 37):
        hits = [low <= p <= high for low, high in (accuracy_interval([k], [n]) for k in range(n + 1))]
        coverages.append(sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1) if hits[k]))
    assert np.mean(coverages) == pytest.approx(0.95, abs=0.015)


def test_splits_that_differ_widen_the_interval() -> None:
    from scipy.stats import t

    alike, different = accuracy_interval([70, 70, 70], [100] * 3), accuracy_interval([50, 70, 90], [100] * 3)
    assert alike == pytest.approx(accuracy_interval([210], [300]))
    width = t.ppf(0.975, 2) * np.std([0.5, 0.7, 0.9], ddof=1) / np.sqrt(3)
    assert different == pytest.approx((0.7 - width, 1.0))
    assert accuracy_interval([70, 0], [100, 0]) == accuracy_interval([70], [100])


def test_few_nodes_have_no_curves() -> None:
    few = summarise_evaluation("a", evaluation(MIN_CURVE_NODES - 1, 0.8))
    many = summarise_evaluation("a", evaluation(MIN_CURVE_NODES, 0.8))
    assert few["reliability"] == few["certainty"] == []
    assert len(many["certainty"]) == 20
    assert many["certainty"][-1][:2] == [1, many["accuracy"]]
    assert many["certainty"][-1][2:] == pytest.approx(many["interval"])
    assert sum(point[-1] for point in many["reliability"]) == MIN_CURVE_NODES
    for _, accuracy, low, high, _ in many["reliability"]:
        assert low <= accuracy <= high
    assert (few["n_nodes"], few["n_splits"]) == (MIN_CURVE_NODES - 1, 1)


def test_trials_are_joined_with_their_numbers() -> None:
    codes = np.repeat([0, 1], 20)
    joined = join_trials([examples.predicted()] * 2, [np.array([0, 1]), np.array([30, 31, 32])], codes)
    assert joined.splits is not None
    assert joined.splits.tolist() == [0, 0, 1, 1, 1]
    assert joined.codes.tolist() == [0, 0, 1, 1, 1]
    assert summarise_evaluation("a", joined)["n_splits"] == 2


def test_nodes_come_by_uncertainty() -> None:
    predicted = examples.predicted()
    truth = np.repeat([0, 1], 20)
    section = sections.classification_section(np.arange(40), ["a", "b"], predicted, [0, 19, 5], truth=truth)
    assert section["ids"] == ["19", "5", "0"]
    assert section["predicted"] == [1, 1, 1]
    assert section["truth"] == [0, 0, 0]
    assert section["n_nodes"] == 3
    assert np.allclose(np.add(section["aleatoric"], section["epistemic"]), section["total"], atol=1e-3)
    assert section["evaluations"] == []


def test_doubtful_and_missing_edges_have_reasons() -> None:
    model = LinkPredictor().fit(datasets.load("karate"), rng=0)
    section = sections.links_section(model)
    first, second, _ = next(iter(model.doubtful(1)))
    assert section["headline"].startswith(f"The least credible edge is between {first} and {second} (")
    for link in section["lists"]["doubtful"] + section["lists"]["missing"]:
        total = logit(link["base_rate"]) + sum(contribution for *_, contribution in link["reasons"])
        assert expit(total) == pytest.approx(link["probability"], rel=0.05)
        assert all(end in link["ends"] for end, *_ in link["donors"])


LIBRARY = datasets.load("library")
DONORS = donor_matrix(default_donors(), LIBRARY)


def test_histories_and_donors_of_users() -> None:
    log = examples.log()
    donors = donor_matrix(default_donors(), log)
    section = recommendations_section(log, CopyEASE().fit(log), donors, [3, 0], k=4)
    users, items = section["user_names"], section["item_names"]
    assert [user["id"] for user in section["users"]] == log.user_ids[[3, 0]].tolist()
    assert section["n_users"] == 12
    has = {
        str(user): set(log.item_ids[log.matrix[[row]].indices].tolist())
        for row, user in enumerate(log.user_ids.tolist())
    }
    for user in section["users"]:
        assert {items[number] for number in user["history"]} == has[user["id"]]
        assert user["n_items"] == len(has[user["id"]])
        chances = [probability for _, probability, _, _ in user["donors"]]
        assert chances == sorted(chances, reverse=True)
        for donor, _, n_items, n_common in user["donors"]:
            assert n_common == len(has[users[donor]] & has[user["id"]])
            assert n_items == len(has[users[donor]])
        assert not {items[item] for item, *_ in user["items"]} & has[user["id"]]


def test_recommendations_have_the_largest_shares_of_their_scores() -> None:
    model = CopyEASE().fit(LIBRARY)
    section = recommendations_section(LIBRARY, model, DONORS, [7], k=4)
    for item, _, because_of, donors in section["users"][0]["items"]:
        explanation: Any = model.explain(LIBRARY.user_ids[7], section["item_names"][item], 3)
        for entry, names, part in (
            (because_of, section["item_names"], explanation.items),
            (donors, section["user_names"], explanation.donors),
        ):
            assert [names[number] for number in entry[::2]] == part.ids.tolist()
            shares = np.array(entry[1::2]) / 1000
            assert shares == pytest.approx(part.values / explanation.score, abs=6e-4)


def test_donors_are_left_out_where_they_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "MAX_ITEMS", 10)
    section = recommendations_section(LIBRARY, CopyEASE().fit(LIBRARY), DONORS, [7])
    assert {len(entry) for entry in section["users"][0]["items"]} == {3}


def test_lists_are_summarised_with_intervals() -> None:
    values = np.array([0.0, 0.5, 1.0, 0.5])
    per_user = {"recall@10": values, "ndcg@10": values / 2}
    means = {key: part.mean() for key, part in per_user.items()}
    split = Evaluation(means, np.arange(4), per_user)
    alone = sections.summarise_lists("a", [split])
    width = 1.96 * values.std(ddof=1) / 2
    assert (alone["recall"], alone["ndcg"]) == (0.5, 0.25)
    assert alone["interval"] == pytest.approx([0.5 - width, 0.5 + width], abs=1e-3)
    low = Evaluation(dict.fromkeys(means, 0.0), np.arange(4), per_user)
    wide = sections.summarise_lists("a", [split, low])
    assert wide["interval"] == [0, 1]
    assert wide["n_splits"] == 2


@pytest.fixture(scope="module")
def digits() -> Any:
    return datasets.load("digits")


@pytest.fixture(scope="module")
def split(digits: Any) -> Any:
    return datasets.label_split(digits.labels, 5, validation=0, test=300, rng=0)


def test_the_attacked_digit_is_misled_and_corrected(digits: Any, split: Any) -> None:
    repair = attack_and_correct(digits, split.train, split.test, rng=0)
    before, attacked, repaired = repair.stages
    own = digits.adjacency[[repair.node]].indices.tolist()
    assert repair.node in split.test
    assert before.neighbours == [(node, "own") for node in own]
    assert PREFERRED_DEGREE <= len(own) == repair.n_flips <= MAX_DEGREE
    assert {node for node, kind in attacked.neighbours if kind == "added"}.isdisjoint(own)
    assert {kind for _, kind in repaired.neighbours} == {"copied"}
    truth = repair.codes[repair.node]
    predicted = [stage.probabilities.argmax() for stage in repair.stages]
    assert predicted[0] == predicted[2] == truth != predicted[1]
    assert 1 <= repair.n_attacked <= MAX_ATTACKED
    assert repair.node not in repair.donors
    assert np.array_equal(repair.classes, np.arange(10))
    assert repair.evidence is not None
    assert repair.evidence.corrected == truth
    neighbours = {node for node, _ in attacked.neighbours}
    assert {edge.neighbour for edge in repair.evidence.edges} == neighbours


def test_the_closest_node_is_shown(digits: Any, split: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, float]] = []

    def harmless(graph: Graph, node: int, train: Any, rng: Any) -> tuple[Graph, Any]:
        defence: Any = CopyingDefence().fit(graph, train, rng=len(calls))
        calls.append((node, float(defence.undefended_proba()[node, digits.labels[node]])))
        return graph, defence

    monkeypatch.setattr(sections, "MAX_ATTACKED", 4)
    monkeypatch.setattr(sections, "_attack", harmless)
    repair = attack_and_correct(digits, split.train, split.test, rng=0)
    clean: Any = GCN().fit(digits, split.train, rng=0).predict_proba()
    losses = {node: clean[node, digits.labels[node]] - after for node, after in calls}
    assert repair.n_attacked == len(calls) == 4
    assert losses[repair.node] == max(losses.values())
