"""
How many donors?
================

With nearest neighbours as donors there is one number to choose: K, how many of them. It cannot be both
faithful and bold. Few donors leave a sample close to the observed graph; many give more edges that were not
observed a chance.
"""

# %%
# Hidden edges
# ------------
# One way to choose is to hide some edges and ask which K finds them likely. The expectation of the sample is
# exact, so nothing needs to be sampled; a small chance for any pair keeps the logarithm finite.

import matplotlib.pyplot as plt
import numpy as np

from nodecopy import NearestNeighbours, NodeCopying, compare, datasets
from nodecopy.generators import GAE, split_edges

NAME = "digits"  # or "cora", once its files are there: nodecopy datasets fetch cora
CHOICES = [2, 5, 10, 20, 50]

split = split_edges(datasets.load(NAME), validation=0.0, test=0.1, rng=0)
graph = split.train
embeddings = GAE().fit(graph, rng=0).embeddings()
anywhere = graph.n_edges / (graph.n_nodes * (graph.n_nodes - 1) / 2)

likely = []
for k in CHOICES:
    model = NodeCopying(NearestNeighbours(k, embeddings=embeddings), symmetrise="one-endpoint").fit(graph)
    expected = model.expected_adjacency()
    edges, others = (0.9 * expected.entries(*pairs) + 0.1 * anywhere for pairs in split.test)
    likely.append(np.log(edges).mean() + np.log1p(-others).mean())
    print(f"K = {k:>2}: mean log-likelihood of hidden edges and of as many other pairs {likely[-1]:.2f}")

# %%
# What samples keep
# -----------------
# Another way is to look at the samples: how much do they keep of the observed edges and triangles?

NAMES = ["edge_overlap", "transitivity", "triangles"]
kept = []
for k in CHOICES:
    model = NodeCopying(NearestNeighbours(k, embeddings=embeddings), symmetrise="one-endpoint").fit(graph)
    found = compare(graph, model.sample_many(5, rng=0), path_length=False)
    kept.append([found[name].mean / found[name].observed for name in NAMES])
    print(
        f"K = {k:>2}:", ", ".join(f"{name} {share:.0%}" for name, share in zip(NAMES, kept[-1], strict=True))
    )

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
left.plot(CHOICES, likely, marker="o")
left.set(ylabel="log-likelihood of hidden edges")
right.plot(CHOICES, kept, marker="o", label=NAMES)
right.set(ylabel="share of the observed", ylim=0)
right.legend()
for axis in (left, right):
    axis.set(xscale="log", xlabel="K")
    axis.set_xticks(CHOICES, CHOICES)
    axis.minorticks_off()

# %%
# The two disagree: hidden edges want many donors, triangles and edges few. For samples that look like the
# observed graph take a small K, or :class:`.Balanced` donors of about the same degree; for edges that were
# missed, a large one. Cora and Polblogs say the same: hidden edges are likeliest with about 50 donors.
