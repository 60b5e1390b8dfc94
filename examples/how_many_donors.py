"""
Choosing the number of donors
=============================

If the donors of a node are its K nearest neighbours, how large should K be? With few donors, samples stay
close to the observed graph. With many, unobserved edges become more likely.
"""

# %%
# Likelihood of held-out edges
# ----------------------------
# One criterion is the likelihood of held-out edges, which the exact expected adjacency matrix gives without
# sampling. A small probability for all pairs keeps the logarithm finite.

import matplotlib.pyplot as plt
import numpy as np

from nodecopy import NearestNeighbours, NodeCopying, compare, datasets
from nodecopy.generators import GAE, split_edges

NAME = "digits"  # or "cora", which is fetched
CHOICES = [2, 5, 10, 20, 50]

split = split_edges(datasets.load(NAME), validation=0.0, test=0.1, rng=0)
graph = split.train
embeddings = GAE().fit(graph, rng=0).embeddings()
density = graph.n_edges / (graph.n_nodes * (graph.n_nodes - 1) / 2)

likelihoods = []
for k in CHOICES:
    model = NodeCopying(NearestNeighbours(k, embeddings=embeddings), symmetrise="one-endpoint").fit(graph)
    expected = model.expected_adjacency()
    edges, non_edges = (0.9 * expected.entries(*pairs) + 0.1 * density for pairs in split.test)
    likelihoods.append(np.log(edges).mean() + np.log1p(-non_edges).mean())
    print(f"K = {k:>2}: mean log-likelihood of held-out edges and non-edges {likelihoods[-1]:.2f}")

# %%
# Structure of samples
# --------------------
# Another criterion is the structure of samples, relative to the observed graph.

NAMES = ["edge_overlap", "transitivity", "triangles"]
shares = []
for k in CHOICES:
    model = NodeCopying(NearestNeighbours(k, embeddings=embeddings), symmetrise="one-endpoint").fit(graph)
    comparison = compare(graph, model.sample_many(5, rng=0), path_length=False)
    shares.append([comparison[name].mean / comparison[name].observed for name in NAMES])
    print(
        f"K = {k:>2}:",
        ", ".join(f"{name} {share:.0%}" for name, share in zip(NAMES, shares[-1], strict=True)),
    )

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
left.plot(CHOICES, likelihoods, marker="o")
left.set(title="log-likelihood")
right.plot(CHOICES, shares, marker="o", label=["edges", "transitivity", "triangles"])
right.set(title="share of the observed", ylim=0)
right.legend(fontsize="small")
for axis in (left, right):
    axis.set(xscale="log", xlabel="K")
    axis.set_xticks(CHOICES, CHOICES)
    axis.minorticks_off()

# %%
# The two criteria disagree: held-out edges are more likely with many donors, but few donors preserve more
# edges and triangles. For samples that resemble the observed graph, choose a small K, or :class:`.Balanced`
# donors of similar degree. To predict missing edges, choose a large K. On Cora and Polblogs, about 50 donors
# have the highest likelihood.
