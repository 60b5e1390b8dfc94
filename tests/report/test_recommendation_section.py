from __future__ import annotations

from typing import Any

import pytest

from nodecopy import datasets
from nodecopy.recommend import IALS, CopyEASE
from nodecopy.recommend.copy_ease import default_donor_law, donor_matrix
from nodecopy.report import recommendation_section
from nodecopy.report.recommendation_section import recommendations_section
from tests.report import examples

LIBRARY = datasets.load("library")
DONORS = donor_matrix(default_donor_law(), LIBRARY)


def test_histories_and_donors_of_users() -> None:
    log = examples.log()
    donors = donor_matrix(default_donor_law(), log)
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
        chances = [donor["probability"] for donor in user["donors"]]
        assert chances == sorted(chances, reverse=True)
        for donor in user["donors"]:
            assert donor["n_common"] == len(has[users[donor["user"]]] & has[user["id"]])
            assert donor["n_items"] == len(has[users[donor["user"]]])
        assert not {items[entry["item"]] for entry in user["items"]} & has[user["id"]]


def test_recommendations_have_the_largest_shares_of_their_scores() -> None:
    model = CopyEASE().fit(LIBRARY)
    section = recommendations_section(LIBRARY, model, DONORS, [7], k=4)
    for entry in section["users"][0]["items"]:
        explanation: Any = model.explain(LIBRARY.user_ids[7], section["item_names"][entry["item"]], 3)
        for key, names, part in (
            ("because_of", section["item_names"], explanation.items),
            ("donors", section["user_names"], explanation.donors),
        ):
            assert [names[number] for number, _ in entry[key]] == part.ids.tolist()
            shares = [share for _, share in entry[key]]
            assert shares == pytest.approx(part.values / explanation.score, rel=0.06)


def test_donors_are_left_out_where_they_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recommendation_section, "MAX_ITEMS", 10)
    section = recommendations_section(LIBRARY, CopyEASE().fit(LIBRARY), DONORS, [7])
    assert set(section["users"][0]["items"][0]) == {"item", "score", "because_of"}


def test_other_models_are_not_explained() -> None:
    section = recommendations_section(LIBRARY, IALS(n_factors=4).fit(LIBRARY, rng=0), DONORS, [7])
    assert set(section["users"][0]["items"][0]) == {"item", "score"}
