"""
Intervals and tests from one network
====================================

Zachary's karate club was observed once. How uncertain are its statistics, is its structure significant, and
who are its leaders?
"""

# sphinx_gallery_thumbnail_number = 2

# %%
# Intervals
# ---------
# Samples with the same members and resampled ties show how much a statistic varies. A member takes the ties
# of a member of similar degree in the same community, which is estimated from the ties. In such a small club,
# the most active members have few donors; a warning reports that standard errors are too small.

import matplotlib.pyplot as plt
import numpy as np

from nodecopy import datasets, inference

club = datasets.load("karate")
NAMES = ["density", "transitivity", "modularity"]
ties = inference.bootstrap(club, NAMES, n=400, rng=0)
print(ties)
figure, axes = plt.subplots(1, 3, figsize=(10, 4), layout="constrained")
ties.plot(axes=axes)

# %%
# If the *members* are a sample of a population, too, the standard errors are larger.

members = inference.bootstrap(club, NAMES, resample="nodes", n=400, rng=0)
for name in NAMES:
    errors = [float(result[name].standard_error) for result in (ties, members)]
    print(f"{name}: standard error {errors[0]:.3f} of ties, {errors[1]:.3f} of members")

# %%
# Significance
# ------------
# Random graphs with the same degrees are the usual null model. The modularity of the factions is significant,
# the transitivity is not.

results = inference.null_test(club, ["transitivity", "modularity"], null="configuration", n=499, rng=0)
print(results.to_pandas()[["observed", "null_mean", "z_score", "p_value"]].round(3))
figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
results.plot(axes=axes)

# %%
# Leaders
# -------
# The intervals hold for all members simultaneously, and ``top_share`` is the share of samples in which a
# member is among the first two.

rank = inference.bootstrap(club, "pagerank", n=400, simultaneous=True, rng=0)
share = rank.top_share(2)
for position in np.argsort(-share)[:4]:
    estimate = rank["pagerank"]
    low, high = np.asarray(estimate.low)[position], np.asarray(estimate.high)[position]
    print(
        f"member {club.node_ids[position]}: among the first two in {share[position]:.0%} of the samples, "
        f"PageRank {low:.3f} to {high:.3f}"
    )
figure, axes = plt.subplots(layout="constrained")
rank.plot(axes=axes)
