"""Mistakes are errors of one line with exit code 2, before anything is computed or written."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest

from nodecopy import NodeCopying, SameLabel, datasets
from nodecopy.io.tables import write_table
from tests.cli.conftest import Run
from tests.cli.labelled_files import write_files

GRAPH = "graph.csv --features features.csv --labels labels.csv"
MISTAKES = f"""
sample karat | Did you mean karate?
sample nowhere.csv | nowhere.csv does not exist
sample karate --keep nan | --keep must be a number between 0 and 1; got nan.
sample karate --directed | --directed applies to files only; got the dataset 'karate'.
sample karate --donors nearest-neighbours | needs features; got none. Give --features FILE.
sample karate --interactions | the source must hold interactions for this command; karate is
sample karate --donors jaccard --n-neighbours 5 | --n-neighbours applies to --donors nearest-neighbours only
sample karate --max-donors 2 | --max-donors applies to --donors jaccard only; got --donors same-label
sample library --label a | --label applies to graphs only; got interactions
sample graph.csv --directed --symmetrise maximum | --symmetrise applies to undirected graphs only; got Graph
sample library --symmetrise none | --symmetrise applies to undirected graphs only; got Interactions(
sample edges.parquet --engine duckdb --out out --directed --symmetrise maximum | undirected graphs only; got
sample edges.parquet --engine duckdb | --engine duckdb writes Parquet: give --out FOLDER, without --format.
sample edges.parquet --engine duckdb --out out --donors same-label | same-label with --labels FILE
sample karate --engine duckdb --out out | takes Parquet files, not names of datasets; got karate
stats karate --samples . | --samples must be a graph or a folder with sample-* files; . has none
stats library | the source must be a graph for this command; library holds interactions
infer karate --statistic transitivty | Did you mean transitivity
infer karate --model subsampling | one of dc-sbm, dot-product, node-copying, sbm; got 'subsampling'
infer karate --picture x.gif | x.gif must end in one of .png, .svg, .pdf
infer karate --simultaneous | --simultaneous applies to --statistic degrees and pagerank only; got density
infer karate --resample nodes --statistic pagerank | --statistic pagerank needs --resample edges
classify graph.csv --labels labels.csv --method gcn | must have features to be classified
classify graph.csv --features features.csv | must have labels to learn from; got none.
classify {GRAPH} --method gcn --n-rounds 2 | --n-rounds applies to --method self-training or bgcn-copy only
classify {GRAPH} --n-rounds validation | at least 0 for --method self-training
classify {GRAPH} --method sbm-gcn | --method sbm-gcn needs validation nodes; got none.
classify {GRAPH} --calibrate | --calibrate needs validation nodes; got none. Give --validation SHARE.
classify {GRAPH} --labels-per-class 5 | --labels-per-class applies to datasets only
classify {GRAPH} --out labels.csv | --out must be a file that is neither an input nor another output
classify {GRAPH} --n-neighbours 5 | --n-neighbours applies to features without edges only
classify {GRAPH} --load model.npz --method gcn | --method applies to training only
classify {GRAPH} --load copying.npz | --load must be a file of a classifier; copying.npz holds a NodeCopying
classify --labels labels.csv | a source must be given: a dataset, a file of edges or --features FILE
classify graph.csv --ignore-column x | --ignore-column applies to --features FILE only
attack graph.csv | must have labels for this command; got none. Give --labels FILE
attack {GRAPH} --nodes q99 | --nodes must hold ids of nodes; got 'q99'
attack {GRAPH} --nodes p01 --n-targets 2 | --n-targets applies to random
attack {GRAPH} --n-targets 99 | number of candidates = 29; got 99
attack {GRAPH} --budget few | --budget must be a whole number, 'degree'
attack {GRAPH} --out same.npz --flips same.npz | --flips must be a file that is neither an input nor another
defend {GRAPH} --nodes p01 --donors vgae | --donors applies to --method copying only; got --method evidence.
defend {GRAPH} --nodes p01 --suspects 0.1 | --nodes and --suspects must not be given together
defend {GRAPH} --flips missing.npz | missing.npz
defend graph.csv --labels labels.csv --nodes p01 | Give --features FILE
defend graph.csv --labels labels.csv --method copying --donors vgae | detecting attacked nodes needs features
defend {GRAPH} --suspects 0.1 --trust-edges --method copying | --trust-edges applies to known attacked nodes
defend {GRAPH} --nodes p01 --method copying --n-donors 30 | n_nodes - 1 = 29; got 30
recommend library | the users must be given; got none. Give --user ID, --users FILE or --all-users.
recommend library --user 'raeder 007' | Did you mean reader 007
recommend library --user 'reader 001' --all-users | --user applies to some users only
recommend library --all-users --min-rating 3 | --min-rating needs ratings
recommend library --all-users --device cuda --model item-knn | --device applies to models that use torch only
recommend words.csv --all-users | line 3 has rating 'good', which is not a number. Correct it
stats words.csv --weight rting | words.csv: --weight must be a column; got 'rting', where there are user, item
stats words.csv --weight '' --labels labels.csv | Correct the ids, or add isolated nodes (--allow-isolated).
stats words.csv --weight rating | (--weight '').
recommend zero.csv --all-users | zero.csv must hold at least one interaction
recommend --all-users | the source must be a file of interactions or a dataset; got none.
recommend library --model-file model.npz --all-users | place of a source; got library too.
evaluate library --split published | --split published needs one of the datasets gowalla
evaluate library --split time | --split time needs the time of each interaction; library has none
evaluate library --test-share 1 | --test-share must be above 0 and below 1; got 1
evaluate library --metric recal@5 | --metric must be of the form 'recall@k'
evaluate library --validation v.csv | --validation applies to --test FILE only
evaluate library --model popularity --tune | --tune needs --model ease, copy-ease or ials
evaluate library --metric novelty@5 --per-user u.csv | --per-user needs a metric of users
evaluate library --model lightgcn --split user | --split user needs models that score users outside training
evaluate library --model eas | --model must be one of
reproduce table22 | Did you mean table2
reproduce table2 --dataset coral | Did you mean cora
reproduce table6 --labels 5 | must be left out: table6 has none; got 5
reproduce table2 --stored --fresh | --stored and --fresh exclude each other
reproduce table2 --backend dask | --backend dask and --scheduler ADDRESS go together
reproduce table2 --stored | --store must hold finished trials of table2 with --stored
report | there is nothing to report
report karate --out page.pdf | .html
report --results . | --results must hold CSV files of results tables; got ., which has none
datasets fetch karat | Did you mean karate
"""


@pytest.fixture
def files(run: Run) -> None:
    write_files()
    write_table("edges.parquet", {"source": np.arange(3), "target": np.arange(1, 4)})
    NodeCopying(SameLabel()).fit(datasets.load("karate")).save("copying.npz")
    Path("words.csv").write_text("user,item,rating\nann,tea,4\nann,jam,good\n", encoding="utf-8")
    Path("zero.csv").write_text("user,item,rating\nann,tea,0\n", encoding="utf-8")


@pytest.mark.parametrize("mistake", MISTAKES.strip().splitlines())
def test_a_mistake_is_an_error_of_one_line(run: Run, files: None, mistake: str) -> None:
    before = sorted(Path().iterdir())
    command, _, fragment = mistake.partition(" | ")
    ran = run(*shlex.split(command))
    assert (ran.code, ran.out) == (2, "")
    *_, last = ran.err.splitlines()
    assert last.startswith("error: ")
    assert fragment in last
    assert sorted(Path().iterdir()) == before
