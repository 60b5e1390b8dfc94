"""
Sampling graphs like the one you have
=====================================

Node copying gives every node the neighbours of a *donor*, a node that is like it. Who is like whom is the
only choice; everything else follows.
"""

# %%
# The karate club
# ---------------
# Zachary's club of 34 members split into two factions. Members of a faction are alike, so each takes the
# friends of a random member of the own faction.

import matplotlib.pyplot as plt

from nodecopy import Jaccard, NodeCopying, SameLabel, compare, datasets
from nodecopy.report import draw_graphs

karate = datasets.load("karate")
model = NodeCopying(SameLabel()).fit(karate)
keeps_density = NodeCopying(SameLabel(), symmetrise="one-endpoint").fit(karate)

graphs = {
    "observed": karate,
    "sample": model.sample(rng=3),
    "sample, one endpoint decides": keeps_density.sample(rng=3),
}
figure, axes = plt.subplots(1, 3, figsize=(12, 4.6), layout="constrained")
draw_graphs(graphs, axes=axes)

# %%
# The paper's rule keeps an edge if either endpoint's copied row has it, which adds edges. With
# ``symmetrise="one-endpoint"`` a coin for each pair picks whose row decides, which keeps the density.
#
# How much do samples resemble the observed graph?
# ------------------------------------------------
# Samples come as a stream: they are measured one at a time and not kept.

print(compare(karate, keeps_density.sample_many(200, rng=3)))

# %%
# Exact expectations
# ------------------
# The mean over *all* samples needs no sampling. Here is the probability of each edge under the model, and how
# far the mean of 200 samples still is from it.

expected = keeps_density.expected_adjacency().toarray()
sampled = keeps_density.monte_carlo_adjacency(200, rng=3).toarray()
print(f"largest difference after 200 samples: {abs(expected - sampled).max():.3f}")

order = karate.labels.argsort(kind="stable")
figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
matrices = {"observed": karate.adjacency.toarray(), "expected": expected}
for panel, (title, matrix) in zip(axes, matrices.items(), strict=True):
    panel.imshow(matrix[order][:, order], cmap="Blues")
    panel.set_title(title)
    panel.set_axis_off()

# %%
# Other notions of being alike
# ----------------------------
# Without labels, members who share friends are alike. Features, embeddings and any similarity matrix work the
# same way: :class:`.NearestNeighbours`, :class:`.Weighted`.

by_friends = NodeCopying(Jaccard(max_donors=5), keep=0.2).fit(karate)
print(by_friends.sample(rng=0))
print("donors of member 34:", karate.node_ids[by_friends.draw_donors(rng=0)[33]])

# %%
# NetworkX in, NetworkX out
# -------------------------
# Nodes and attributes stay.

import networkx as nx

from nodecopy.interop.networkx import sample

club = nx.karate_club_graph()
other = sample(club, label="club", rng=0)
print(other, other.nodes[33])
