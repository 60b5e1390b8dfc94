"""
Which ties are missing, and which are doubtful?
===============================================

*Les Misérables* has a network of characters who appear in the same chapter. Which pairs should have met, and
which ties would nobody expect from the others?
"""

# %%
# Missing ties
# ------------
# The predictor learns from the network itself: a tenth of the ties is held out at a time. Probabilities are
# for pairs of whom it is not known whether they meet; an absent tie with a high one is a surprise.

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
# Why? Each signal adds to the log-odds of a tie. Donors are characters with similar ties who know the other
# of the two.

print(model.explain(model.missing(1), k=3))

# %%
# Doubtful ties
# -------------
# Every tie is judged as if it were absent.

for first, second, probability in model.doubtful(5):
    print(f"{first} and {second}: {probability:.4f}")

# %%
# Does it find errors?
# --------------------
# Add a tenth of random ties, and look for them.

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

bins = np.linspace(0, 1, 21)
plt.hist([p[~is_planted], p[is_planted]], bins, stacked=True, label=["real ties", "planted ties"])
plt.xlabel("probability as if absent")
plt.ylabel("ties")
plt.legend()
plt.show()

# %%
# Removing as many doubtful ties as were planted leaves a network that is nearer to the real one.

cleaned = suspect.denoise(remove=len(planted))
n_left = (cleaned.adjacency.toarray()[tuple(planted.T)] > 0).sum()
print(f"{len(planted)} planted ties, {n_left} of them left")
