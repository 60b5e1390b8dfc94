from __future__ import annotations

import json

import numpy as np
import pytest

from nodecopy import SameLabel, datasets
from nodecopy.errors import InputError
from nodecopy.inference import bootstrap

CLUB = datasets.load("karate")
RESULT = bootstrap(CLUB, ["density", "degrees"], model=SameLabel(), n=30, rng=0)
NUMBERS = bootstrap(CLUB, ["density", "transitivity"], model=SameLabel(), n=30, rng=0)


def test_the_text_says_question_model_and_intervals() -> None:
    text = repr(NUMBERS)
    assert text.startswith("How much would the statistic vary if the edges were drawn again")
    assert "30 samples of NodeCopying(law=SameLabel" in text
    assert "density: 0.139, standard error" in text
    assert "degrees: 34 nodes, an interval each" in repr(RESULT)


def test_estimates_by_name_and_in_order() -> None:
    assert [row.name for row in NUMBERS] == ["density", "transitivity"]
    assert NUMBERS["transitivity"].name == "transitivity"
    assert RESULT["degrees"].is_per_node


def test_json() -> None:
    loaded = json.loads(json.dumps(RESULT.to_dict()))
    assert loaded["target"] == "edges"
    assert loaded["statistics"]["density"]["observed"] == pytest.approx(0.139, abs=1e-3)
    assert len(loaded["statistics"]["degrees"]["low"]) == 34


def test_data_frames() -> None:
    assert list(NUMBERS.to_pandas().index) == ["density", "transitivity"]
    table = RESULT.to_pandas()
    assert len(table) == 35
    assert table.loc[("degrees", 34), "observed"] == 17  # the id of the second hub


def test_how_often_a_node_is_at_the_top() -> None:
    share = RESULT.top_share(2)
    assert share.sum() == pytest.approx(2)
    assert share.max() <= 1
    every = RESULT.top_share(34, "degrees")
    assert np.array_equal(every, np.ones(34))
    with pytest.raises(InputError, match=r"name must be a statistic of given nodes, one of \['degrees'\]"):
        RESULT.top_share(2, "density")


def test_plots_return_axes() -> None:
    pytest.importorskip("matplotlib").use("agg")
    axes = RESULT.plot()
    assert [place.get_title() for place in axes] == ["density", "degrees"]
    single = bootstrap(CLUB, "density", model=SameLabel(), n=5, rng=0)
    assert single.plot(axes[0]) is axes[0]
