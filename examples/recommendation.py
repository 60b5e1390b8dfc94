"""
Recommendation
==============

Copying works on any table of rows: a reader might as well have had the shelf of a reader with similar taste.
:class:`.CopyEASE` learns in closed form from shelves in which books were copied this way.
"""

# %%
# A library of invented readers with planted tastes
# -------------------------------------------------

import matplotlib.pyplot as plt
import numpy as np

from nodecopy import Jaccard, NodeCopying, datasets
from nodecopy.recommend import EASE, CopyEASE, Popularity

library = datasets.load("library")  # yours: read_interactions("log.csv"), or a data frame
print(library)

# %%
# What a reader may like, with ids as they came in
# ------------------------------------------------

model = CopyEASE().fit(library)
print(model.to_pandas(["reader 001", "reader 002"], 4))

# %%
# Whose shelf would be copied?
# ----------------------------

readers = NodeCopying(Jaccard(include_self=False, max_donors=50)).fit(library)
chance = readers.distribution_.probabilities()[[0]].toarray()[0]
for donor in np.argsort(-chance)[:3]:
    print(f"{library.user_ids[donor]}  with probability {chance[donor]:.2f}")

# %%
# Somebody new
# ------------
# A list of books is enough.

books, _ = model.recommend_new([["Dracula", "Carmilla", "Frankenstein"]], 5)
print(books[0])

# %%
# Is it any good?
# ---------------
# Hide three of ten books of every reader, ten times.

recalls = {}
for recommender in (Popularity(), EASE(regularisation=150.0), CopyEASE()):
    found = []
    for seed in range(10):
        split = datasets.interaction_split(library, (0.7, 0.0, 0.3), rng=seed)
        found.append(recommender.fit(split.train).evaluate(split.test, metrics=["recall@10", "coverage@10"]))
    name = type(recommender).__name__
    recalls[name] = [one["recall@10"] for one in found]
    coverage = np.mean([one["coverage@10"] for one in found])
    print(f"{name:11} recall@10 {np.mean(recalls[name]):.3f}   books ever shown {coverage:.2f}")

figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
axes.plot(list(recalls), np.array(list(recalls.values())), "o-", color="#5e81ac", alpha=0.7)
axes.set_ylabel("recall@10")
axes.set_title("ten times three of ten books hidden")
