"""
Are friends of friends friends?
===============================

In most social networks, two people with a common friend are often friends themselves (triadic closure).
Popular people have many common friends in any network, though, and so have members of a group. Is there more
closure than popularity and groups explain? This example tests two networks: the karate club, and the
characters of *Les Misérables* who appear in the same chapter.
"""

# %%
# Three null models
# -----------------
# Each null model preserves more of the network: all degrees, then communities and expected degrees, then the
# neighbourhoods of similar nodes. A transitivity above all samples of a model is not explained by it. Samples
# of node copying preserve part of every neighbourhood, so this test is conservative: a rejection is evidence,
# the lack of one is not.

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

from nodecopy import as_graph, datasets, inference
from nodecopy.copying import NodeCopying
from nodecopy.generators import ConfigurationModel, DegreeCorrectedSBM

novel = nx.les_miserables_graph()
characters = as_graph(novel)
groups = inference.spectral_communities(characters)
networks = {
    "karate club": datasets.load("karate"),
    "Les Misérables": characters.replace(labels=groups),  # communities, estimated from the edges
}
nulls = {
    "degrees": ConfigurationModel(),
    "degrees and communities": DegreeCorrectedSBM(),
    "node copying": NodeCopying(inference.DegreeClasses("labels")),
}
results = {}
for title, network in networks.items():
    for explanation, null in nulls.items():
        tests = inference.null_test(network, "transitivity", null=null, alternative="greater", n=499, rng=0)
        results[title, explanation] = tests["transitivity"]
        row = results[title, explanation]
        print(
            f"{title}: {row.observed:.2f}, by {explanation} {row.values.mean():.2f}, "
            f"p = {row.p_value:.3f} ± {row.p_value_error:.3f} ({row.n_samples} samples)"
        )

# %%
# Degrees alone explain the transitivity of the club; sampling stopped early, as the result was clear. The
# characters of the novel meet in scenes with many people, which neither degrees nor communities explain.

figure, panels = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
for axes, title in zip(panels, networks, strict=True):
    for explanation, colour in zip(nulls, ("#88c0d0", "#a3be8c", "#d08770"), strict=True):
        axes.hist(results[title, explanation].values, bins=20, color=colour, alpha=0.6, label=explanation)
    axes.axvline(results[title, "degrees"].observed, color="#2e3440")
    axes.set(title=title, xlabel="transitivity", yticks=[])
panels[1].legend(fontsize="small", frameon=False, loc="upper left")

# %%
# Are the communities stable?
# ---------------------------
# A stable community is found again in samples. The samples here have the estimated communities, so the result
# is how well the algorithm recovers these.

rule = inference.DegreeClasses(groups)
stability = inference.community_stability(characters, model=rule, n=50, rng=0)
for community in np.argsort(-stability.together):
    members = characters.node_ids[stability.communities == community]
    print(f"{stability.together[community]:.0%} of pairs stay together: {', '.join(members[:4])}, ...")
print(f"all pairs: {stability.all_pairs:.0%}")
figure, axes = plt.subplots(layout="constrained")
stability.plot(axes=axes)
axes.set(xlabel="community", ylabel="pairs that stay together")

# %%
# Who connects the characters?
# ----------------------------
# Functions of NetworkX are statistics, too. Valjean has the highest betweenness in every sample. ``annotate``
# adds the intervals to the graph as node attributes.

between = inference.bootstrap(novel, nx.betweenness_centrality, model=rule, n=100, rng=0)
low, high = between.rank_interval()
for position in np.argsort(-between.top_share(3))[:4]:
    share = between.top_share(3)[position]
    print(
        f"{between.node_ids[position]}: rank {low[position]:.0f} to {high[position]:.0f}, "
        f"among the first three in {share:.0%} of the samples"
    )
print(between.annotate(novel).nodes["Valjean"])
