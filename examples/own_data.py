"""
Your own data
=============

Graphs are read from tables and written to tables, and keep your ids. This example uses data frames; files
work in the same way.
"""

# %%
# A table of edges and a table of labels
# --------------------------------------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from nodecopy import NodeCopying, SameLabel, compare, read_graph, to_pandas
from nodecopy.classify import SelfTraining
from nodecopy.report import draw_graphs

friends = pd.DataFrame(
    [
        ("ann", "bob"), ("ann", "cleo"), ("bob", "cleo"), ("bob", "dan"), ("cleo", "dan"), ("dan", "eve"),
        ("eve", "finn"), ("eve", "gus"), ("finn", "gus"), ("finn", "hal"), ("gus", "hal"), ("hal", "ivy"),
        ("ivy", "eve"),
    ],
    columns=["from", "to"],
)  # fmt: skip
people = pd.DataFrame({"id": ["ann", "bob", "gus", "hal"], "label": ["chess", "chess", "go", "go"]})

# %%
# People without a row in the second table are unlabelled. An id that has no edge is an error, as it may be a
# typing error; ``allow_isolated=True`` adds it as an isolated node.

graph = read_graph(friends, labels=people)
print(graph)

# %%
# Predicting the missing labels
# -----------------------------
# The labelled nodes are the training nodes. :class:`.SelfTraining`, the recommended classifier, predicts the
# labels of the others, with their uncertainty. The graph has no features, so the feature matrix is the
# identity.

classifier = SelfTraining().fit(graph.replace(features=np.eye(graph.n_nodes)), rng=0)
print(classifier.to_pandas()[["predicted", "p_chess", "total_uncertainty"]].round(2))

# %%
# Samples of the labelled graph
# -----------------------------

labelled = graph.replace(labels=classifier.predict())
model = NodeCopying(SameLabel()).fit(labelled)
table = compare(labelled, model.sample_many(100, rng=0)).to_pandas()
print(table.loc[["mean_degree", "triangles", "edge_homophily"]].round(2))

figure, axes = plt.subplots(1, 2, figsize=(7, 4), layout="constrained")
draw_graphs({"observed": labelled, "sample": model.sample(rng=0)}, axes=axes)

# %%
# Back to a table
# ---------------

print(to_pandas(model.sample(rng=0)).head())
