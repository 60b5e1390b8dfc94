from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nodecopy import datasets
from nodecopy.metrics.ranking import Evaluation
from nodecopy.recommend import IALS, CopyEASE
from nodecopy.recommend.copy_ease import default_donors, donor_matrix
from nodecopy.report import sections as recommendation_section
from nodecopy.report.sections import recommendations_section
from tests.report import examples

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
    monkeypatch.setattr(recommendation_section, "MAX_ITEMS", 10)
    section = recommendations_section(LIBRARY, CopyEASE().fit(LIBRARY), DONORS, [7])
    assert {len(entry) for entry in section["users"][0]["items"]} == {3}


def test_other_models_are_not_explained() -> None:
    section = recommendations_section(LIBRARY, IALS(n_factors=4).fit(LIBRARY, rng=0), DONORS, [7])
    assert {len(entry) for entry in section["users"][0]["items"]} == {2}


def test_lists_are_summarised_with_intervals() -> None:
    values = np.array([0.0, 0.5, 1.0, 0.5])
    per_user = {"recall@10": values, "ndcg@10": values / 2}
    means = {key: part.mean() for key, part in per_user.items()}
    split = Evaluation(means, np.arange(4), per_user)
    alone = recommendation_section.summarise_lists("a", [split])
    width = 1.96 * values.std(ddof=1) / 2
    assert (alone["recall"], alone["ndcg"]) == (0.5, 0.25)
    assert alone["interval"] == pytest.approx([0.5 - width, 0.5 + width], abs=1e-3)
    low = Evaluation(dict.fromkeys(means, 0.0), np.arange(4), per_user)
    wide = recommendation_section.summarise_lists("a", [split, low])
    assert wide["interval"] == [0, 1]
    assert wide["n_splits"] == 2
