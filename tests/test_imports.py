"""What is optional stays optional, and every public name can be had."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import nodecopy

HEAVY = (
    *("torch", "pandas", "matplotlib", "networkx", "sklearn", "pyarrow", "torch_geometric"),
    *("implicit", "igraph", "ibis", "duckdb", "pyspark", "joblib", "distributed"),
)


def test_every_public_name_imports() -> None:
    for name in nodecopy.__all__:
        assert getattr(nodecopy, name) is not None
    assert set(nodecopy.__all__) <= set(dir(nodecopy))
    with pytest.raises(AttributeError, match="no attribute 'NodeCopy'"):
        nodecopy.NodeCopy  # type: ignore[attr-defined]  # noqa: B018


def test_nothing_below_nn_needs_an_extra() -> None:
    """With every optional package out of reach, graphs are built, sampled, compared and read."""
    code = f"""
import sys
for name in {HEAVY}:
    sys.modules[name] = None  # any import of it fails
import nodecopy
import nodecopy.copying.kernels, nodecopy.metrics.counting_kernels
import nodecopy.edge_tables
from nodecopy import NodeCopying, SameLabel, compare, datasets, io
from nodecopy.features import neighbours
from nodecopy._core import random
graph = datasets.load("karate")
print(compare(graph, NodeCopying(SameLabel()).fit(graph).sample_many(2, rng=0)))
from nodecopy.generators import MMSBM, SBM, ConfigurationModel, split_edges
split_edges(graph, rng=0)
for generator in (SBM(), MMSBM(), ConfigurationModel()):
    print(generator.fit(graph, rng=0).sample(rng=0))
from nodecopy import SameLabel, inference
print(inference.bootstrap(graph, "density", model=SameLabel(), n=3, rng=0))
print(inference.null_test(graph, "density", null="erdos-renyi", n=3, rng=0))
from nodecopy.links import LinkPredictor
print(LinkPredictor().fit(graph, rng=0).missing(3))
from nodecopy.recommend import EASE, CopyEASE, ItemKNN, Popularity
log = nodecopy.Interactions(graph.adjacency)
for model in (EASE(), CopyEASE(), ItemKNN(), Popularity()):
    print(model.fit(log).evaluate(log, convention="printed"))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "edge_overlap" in ran.stdout


def test_conversions_need_their_own_library_only() -> None:
    code = """
import sys
sys.modules["torch"] = None
from nodecopy import *
import nodecopy, networkx
graph = nodecopy.datasets.load("karate")
print(len(nodecopy.to_pandas(graph)), nodecopy.to_igraph(graph).vcount())
print(nodecopy.sample_like(networkx.path_graph(3), donors=nodecopy.Jaccard(), rng=0))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_classifiers_of_graphs_need_no_scikit_learn() -> None:
    code = """
import sys
sys.modules["sklearn"] = None  # any import of it fails
import numpy as np
from nodecopy import datasets
from nodecopy.classify import GCN
from nodecopy.errors import MissingExtraError
club = datasets.load("karate").replace(features=np.eye(34))
print(GCN(n_epochs=50).fit(club, [0, 33], rng=0).score())
try:
    from nodecopy.classify import GraphClassifier
except MissingExtraError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert re.search(
        r"GraphClassifier needs sklearn, which is not installed: pip install .*\[data\]'", ran.stdout
    )


def test_import_is_light() -> None:
    code = "import sys, nodecopy; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
