"""
Which ties are missing, and which are doubtful?
===============================================

In the network of *Les Misérables*, characters are linked if they appear in the same chapter. Which ties are
probably missing, and which observed ties are improbable given the others?
"""

# %%
# Missing ties
# ------------
# The predictor learns from the network itself: it holds out a tenth of the ties at a time. Probabilities are
# for pairs whose tie is unknown, so an absent tie with a high probability is a surprise.

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

from nodecopy import as_graph
from nodecopy.links import LinkPredictor
from nodecopy.metrics.classification import area_under_roc

characters = as_graph(nx.les_miserables_graph()).binary()
model = LinkPredictor().fit(characters, rng=0)
for first, second, probability in model.missing(5):
    print(f"{first} and {second}: {probability:.2f}")

# %%
# The explanation lists what each signal adds to the log-odds of the tie. Donors are characters with similar
# ties who know the other character.

print(model.explain(model.missing(1), k=3))

# %%
# Doubtful ties
# -------------
# The probability of an observed tie is computed as if it were unknown.

for first, second, probability in model.doubtful(5):
    print(f"{first} and {second}: {probability:.4f}")

# %%
# Detecting planted ties
# ----------------------
# To see how well this works, add a tenth of random ties and rank all ties by their probability.

draws = np.random.default_rng(0)
dense = characters.adjacency.toarray() > 0
absent = np.argwhere(np.triu(~dense, 1))
planted = absent[draws.choice(len(absent), characters.n_edges // 10, replace=False)]
noisy = dense.copy()
noisy[tuple(planted.T)] = True
graph = characters.replace(adjacency=noisy | noisy.T)
suspect = LinkPredictor().fit(graph, rng=0)
rows = graph.rows
upper = rows.row_numbers < rows.indices
is_planted = ~dense[rows.row_numbers[upper], rows.indices[upper]]
p = suspect.edge_probabilities()
print(f"area under the ROC curve: {area_under_roc(-p, is_planted):.2f}")

figure, axes = plt.subplots(layout="constrained")
axes.hist([p[~is_planted], p[is_planted]], np.linspace(0, 1, 11), stacked=True, label=["real", "planted"])
axes.set(xlabel="probability", ylabel="number of ties")
axes.legend()

# %%
# Removing as many doubtful ties as were planted removes more than half of the planted ones.

cleaned = suspect.denoise(remove=len(planted))
n_left = (cleaned.adjacency.toarray()[tuple(planted.T)] > 0).sum()
print(f"{len(planted)} planted ties, {n_left} of them left")
