"""Tables of features with text, missing cells and dates."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import nodecopy
from nodecopy import read_graph
from nodecopy.errors import InputError, NotFittedError
from nodecopy.io import FeatureEncoder

FEATURES = "id,age,city,height\na,31,Oslo,1.8\nb,,Rome,1.7\nc,45,,1.6\nd,38,Oslo,1.5\n"
NAMES = ["age", "height", "age is missing", "city is missing", "city = Oslo", "city = Rome"]
MATRIX = [[31, 1.8, 0, 0, 1, 0], [38, 1.7, 1, 0, 0, 1], [45, 1.6, 0, 1, 0, 0], [38, 1.5, 0, 0, 1, 0]]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    edges, features = tmp_path / "edges.csv", tmp_path / "features.csv"
    edges.write_text("source,target\na,b\nb,c\nc,d\n")
    features.write_text(FEATURES)
    return edges, features


def test_text_and_gaps_are_encoded(files: tuple[Path, Path], caplog: pytest.LogCaptureFixture) -> None:
    graph = read_graph(files[0], features=files[1])
    np.testing.assert_array_equal(graph.features, MATRIX)
    encoder = graph.feature_encoder
    assert encoder.feature_names_ == NAMES
    assert "one-hot encoded text: city (3 values); replaced missing cells by medians" in caplog.text
    assert graph.subgraph([0, 1]).feature_encoder is graph.largest_component().feature_encoder is encoder
    assert graph.replace(labels=[0, 1, 0, 1]).feature_encoder is encoder
    assert graph.replace(features=np.eye(4)).feature_encoder is None


def test_frames_and_parquet_are_encoded_as_a_file_is(files: tuple[Path, Path], tmp_path: Path) -> None:
    frame = pandas.read_csv(files[1])
    frame.astype({"city": "category"}).to_parquet(tmp_path / "features.parquet")
    parquet = read_graph(files[0], features=tmp_path / "features.parquet")
    np.testing.assert_array_equal(parquet.features, MATRIX)
    frame["is_new"] = [True, False, False, True]
    graph = read_graph(pandas.read_csv(files[0]), features=frame)
    names = graph.feature_encoder.feature_names_
    np.testing.assert_array_equal(graph.features[:, names.index("is_new")], [1, 0, 0, 1])  # type: ignore[index]
    assert [name for name in names if name != "is_new"] == NAMES
    np.testing.assert_array_equal(FeatureEncoder(["id"]).fit(frame).transform(frame), graph.features)


def test_new_rows_are_encoded_like_those_of_fit(
    files: tuple[Path, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    encoder = read_graph(files[0], features=files[1]).feature_encoder
    encoder.save(tmp_path / "encoder.npz")
    loaded = nodecopy.load(tmp_path / "encoder.npz")
    assert loaded.has_same_columns(encoder)
    (tmp_path / "new.csv").write_text("id,city,height,age,else\nx,Bergen,NA,50,1\ny,Rome,1.9,,2\n")
    (tmp_path / "edges.csv").write_text("source,target\nx,y\n")
    for fitted in (encoder, loaded):
        graph = read_graph(tmp_path / "edges.csv", features=tmp_path / "new.csv", encoder=fitted)
        np.testing.assert_array_equal(graph.features, [[50, 1.65, 0, 0, 0, 0], [38, 1.9, 1, 0, 0, 1]])
        assert graph.feature_encoder is fitted
    assert "'Bergen' of column city did not occur" in caplog.text
    assert "not in fit are left out: else" in caplog.text


def test_columns_that_are_left_out(files: tuple[Path, Path]) -> None:
    given = FeatureEncoder(ignore_columns="city")
    graph = read_graph(files[0], features=files[1], encoder=given)
    assert graph.feature_encoder.feature_names_ == ["age", "height", "age is missing"]
    with pytest.raises(NotFittedError):  # the encoder that was given is not changed
        given.transform({})
    assert FeatureEncoder().fit({"x": [1, 2], "note": ["", ""]}).feature_names_ == ["x"]


def test_the_encoding_is_that_of_scikit_learn() -> None:
    impute = pytest.importorskip("sklearn.impute")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    draws = np.random.default_rng(0)
    numbers = np.where(draws.random((30, 3)) < 0.2, np.nan, draws.normal(size=(30, 3)))
    texts = draws.choice(["a", "b", ""], (30, 2)).astype(object)
    columns = dict(zip("vwxyz", [*numbers.T, *texts.T], strict=True))
    imputed = impute.SimpleImputer(strategy="median", add_indicator=True).fit_transform(numbers)
    encoded = preprocessing.OneHotEncoder(sparse_output=False).fit_transform(texts)
    ours = FeatureEncoder().fit(columns).transform(columns)
    np.testing.assert_array_equal(ours, np.hstack([imputed, encoded]))


def test_a_median_of_large_numbers_does_not_overflow() -> None:
    encoder = FeatureEncoder().fit({"a": [1e308, 1.5e308], "b": [0.1, 0.2], "c": [-1e308, 1e308]})
    assert encoder.medians_ == {"a": 1.25e308, "b": float(np.median([0.1, 0.2])), "c": 0.0}


@pytest.mark.parametrize(
    ("column", "fragment"),
    [
        (["2024-05-31", "", "2024-06-01 12:00"], r"dates \(2024-05-31\)"),
        (["31.05.2024", "1.6.24"], "dates"),
        (["5/31/2024"], "dates"),
        ([datetime.date(2024, 5, 31)], "dates"),
        (np.array(["2024-05-31"], "datetime64[D]"), "dates"),
        ([f"name {number}" for number in range(10)], r"another text in every row .*ignore_columns=\['c'\]"),
        ([f"name {number // 2}" for number in range(102)], "51 different texts .* more than 50"),
        ([1, 2, "x"], "row 3 has c 'x', which is not a number"),
        (["1", "inf"], "row 2 has c inf; it must be finite or empty"),
        ([None, ""], "at least one of numbers or text"),
    ],
)
def test_columns_that_are_refused(column: Any, fragment: str) -> None:
    with pytest.raises(InputError, match=fragment):
        FeatureEncoder().fit({"c": column})


def test_a_few_texts_may_differ_in_every_row() -> None:
    for n_rows, n_times in ((9, 1), (100, 2)):
        texts = [f"name {row // n_times}" for row in range(n_rows)]
        assert len(FeatureEncoder().fit({"c": texts}).feature_names_) == len(set(texts))


def test_wrong_calls() -> None:
    encoder = FeatureEncoder().fit({"x": [1.0, 2.0]})
    with pytest.raises(InputError, match="there is no 'x'"):
        encoder.transform({"y": [1.0]})
    with pytest.raises(InputError, match="'x' must hold numbers"):
        encoder.transform({"x": ["a"]})
    with pytest.raises(InputError, match="ignore_columns must name columns; got 'y', not in x"):
        FeatureEncoder(ignore_columns=["y"]).fit({"x": [1.0]})


def test_codes_and_versions_are_text() -> None:
    encoder = FeatureEncoder().fit({"postcode": ["0150", "1300", "0150"], "share": ["0.5", "0", "1"]})
    assert encoder.feature_names_ == ["share", "postcode = 0150", "postcode = 1300"]
    assert FeatureEncoder().fit({"x": ["1.2.3", "1.2.4"]}).categories_ == {"x": ["1.2.3", "1.2.4"]}


@pytest.mark.parametrize("word", ["", "NA", "#N/A", "n/a", "nan", "NULL", "none", "?", "-", "."])
def test_words_for_a_missing_number(word: str) -> None:
    columns = {"x": ["1", word, "5", "3"]}
    encoded = FeatureEncoder().fit(columns).transform(columns)
    assert encoded.T.tolist() == [[1, 3, 5, 3], [0, 1, 0, 0]]
