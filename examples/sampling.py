"""
Sampling graphs
===============

Node copying gives every node the neighbours of a *donor*, a similar node. The donor rule defines which nodes
are similar.
"""

# %%
# The karate club
# ---------------
# Zachary's karate club has 34 members and split into two factions. With :class:`.SameLabel`, the donor of a
# member is a random member of the same faction.

import matplotlib.pyplot as plt

from nodecopy import Jaccard, NodeCopying, SameLabel, compare, datasets
from nodecopy.report import draw_graphs

karate = datasets.load("karate")
model = NodeCopying(SameLabel()).fit(karate)

figure, axes = plt.subplots(1, 2, figsize=(7, 4), layout="constrained")
draw_graphs({"observed": karate, "sample": model.sample(rng=3)}, axes=axes)

# %%
# Samples have about as many edges as the observed graph. With ``symmetrise="maximum"``, the rule of the
# paper, they have up to twice as many.

print(NodeCopying(SameLabel(), symmetrise="maximum").fit(karate).sample(rng=3))

# %%
# Comparing samples with the observed graph
# -----------------------------------------
# ``sample_many`` is an iterator: samples are measured one by one and not stored.

print(compare(karate, model.sample_many(200, rng=3)))

# %%
# Exact expectations
# ------------------
# The expected adjacency matrix needs no sampling. It agrees with the mean of 200 samples.

expected = model.expected_adjacency().toarray()
sampled = model.monte_carlo_adjacency(200, rng=3).toarray()
print(f"largest difference after 200 samples: {abs(expected - sampled).max():.3f}")

order = karate.labels.argsort(kind="stable")
figure, axes = plt.subplots(1, 2, figsize=(7, 4), layout="constrained")
matrices = {"observed": karate.adjacency.toarray(), "expected": expected}
for panel, (title, matrix) in zip(axes, matrices.items(), strict=True):
    panel.imshow(matrix[order][:, order], cmap="Blues")
    panel.set_title(title)
    panel.set_axis_off()

# %%
# Other donor rules
# -----------------
# Without labels, donors can be members who share neighbours (:class:`.Jaccard`). :class:`.NearestNeighbours`
# uses features or embeddings, and :class:`.Weighted` any similarity matrix.

by_neighbours = NodeCopying(Jaccard(max_donors=5), keep=0.2).fit(karate)
print(by_neighbours.sample(rng=0))
print("donor of member 34:", karate.node_ids[by_neighbours.draw_donors(rng=0)[33]])

# %%
# NetworkX graphs
# ---------------
# A sample of a NetworkX graph has its nodes and their attributes.

import networkx as nx

from nodecopy import sample_like

club = nx.karate_club_graph()
sampled_club = sample_like(club, label="club", rng=0)
print(sampled_club, sampled_club.nodes[33])
