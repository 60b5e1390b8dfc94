"""
Are friends of friends friends?
===============================

In most social networks two people who know a third one know each other more often than by chance. Popular
people meet in any network, though, and members of a group share friends. Is there closure beyond what
popularity and groups explain? The question is asked of two networks: the karate club, and the characters of
*Les Misérables* who appear in the same chapter.
"""

# %%
# Three null models
# -----------------
# Each null model keeps more of the network: all degrees, then communities and expected degrees, then the
# neighbourhoods of similar nodes. If the transitivity is above all samples of a model, the model does not
# explain it. Samples of node copying keep a part of every neighbourhood, so that its test rejects too rarely:
# a rejection counts, but the lack of one says little.

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
    "Les Misérables": characters.replace(labels=groups),  # communities that are estimated from the edges
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
# The ties of the club are closed as often as degrees alone explain: sampling stopped early, since the answer
# was clear. The characters of the novel meet in scenes, which put many people into one place at once.
# Neither degrees nor communities produce that.

figure, panels = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
for axes, title in zip(panels, networks, strict=True):
    for explanation, colour in zip(nulls, ("#88c0d0", "#a3be8c", "#d08770"), strict=True):
        axes.hist(results[title, explanation].values, bins=20, color=colour, alpha=0.6, label=explanation)
    axes.axvline(results[title, "degrees"].observed, color="#2e3440")
    axes.set(title=title, xlabel="transitivity", yticks=[])
panels[0].legend(fontsize="small", frameon=False)
plt.show()

# %%
# Are the communities real?
# -------------------------
# Communities that are found again when the ties are drawn again are worth a name. Samples of node copying
# inside estimated communities say how well the algorithm finds communities that are there.

rule = inference.DegreeClasses(groups)
stability = inference.community_stability(characters, model=rule, n=50, rng=0)
for community in np.argsort(-stability.together):
    members = characters.node_ids[stability.communities == community]
    print(f"{stability.together[community]:.0%} of the pairs stay together: {', '.join(members[:4])}, ...")
print(f"all pairs: {stability.all_pairs:.0%}")
stability.plot()
plt.show()

# %%
# Who connects them?
# ------------------
# Functions of NetworkX are statistics. Valjean's betweenness is far ahead of everybody else's in every
# sample, and the intervals can be written onto the graph.

between = inference.bootstrap(novel, nx.betweenness_centrality, model=rule, n=100, rng=0)
low, high = between.rank_interval()
for position in np.argsort(-between.top_share(3))[:4]:
    share = between.top_share(3)[position]
    print(
        f"{between.node_ids[position]}: rank {low[position]:.0f} to {high[position]:.0f}, "
        f"among the first three in {share:.0%} of the samples"
    )
print(between.annotate(novel).nodes["Valjean"])
