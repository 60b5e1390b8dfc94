"""
Recommendation
==============

In a sample of interactions, a user takes the items of a user with similar taste. :class:`.CopyEASE` is a
linear recommender that is fitted to the expectation over such samples, in closed form.
"""

# %%
# A synthetic library
# -------------------

import matplotlib.pyplot as plt
import numpy as np

from nodecopy import Jaccard, NodeCopying, datasets
from nodecopy.recommend import EASE, CopyEASE, Popularity

library = datasets.load("library")  # or read_interactions("log.csv")
print(library)

# %%
# Recommendations
# ---------------

model = CopyEASE().fit(library)
print(model.to_pandas(["reader 001", "reader 002"], 4))

# %%
# Donors of a reader
# ------------------

readers = NodeCopying(Jaccard(include_self=False, max_donors=50)).fit(library)
probabilities = readers.distribution_.probabilities()[[0]].toarray()[0]
for donor in np.argsort(-probabilities)[:3]:
    print(f"{library.user_ids[donor]}  with probability {probabilities[donor]:.2f}")

# %%
# Recommendations for a new reader
# --------------------------------
# A list of books is enough.

books, _ = model.recommend_new([["Dracula", "Carmilla", "Frankenstein"]], 5)
print(books[0])

# %%
# Evaluation
# ----------
# In each of ten random splits, 30 % of the books of every reader are held out.

recalls = {}
for recommender in (Popularity(), EASE(regularisation=150.0), CopyEASE()):
    results = []
    for seed in range(10):
        split = datasets.interaction_split(library, (0.7, 0.0, 0.3), rng=seed)
        results.append(
            recommender.fit(split.train).evaluate(split.test, metrics=["recall@10", "coverage@10"])
        )
    name = type(recommender).__name__
    recalls[name] = [values["recall@10"] for values in results]
    coverage = np.mean([values["coverage@10"] for values in results])
    print(f"{name:11} recall@10 {np.mean(recalls[name]):.3f}   item coverage {coverage:.2f}")

figure, axes = plt.subplots(layout="constrained")
axes.plot(list(recalls), np.array(list(recalls.values())), "o-", color="#5e81ac", alpha=0.7)
axes.set(ylabel="recall@10, ten splits", xlim=(-0.3, 2.3))
