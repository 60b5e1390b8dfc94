"""
Intervals and tests from one network
====================================

Zachary's karate club was observed once. How sure are its statistics, is its structure more than chance, and
who are its leaders beyond doubt?
"""

# %%
# Intervals
# ---------
# Samples in which the members stay and their ties are drawn again say how much a statistic varies. A member
# takes the ties of another member of the same faction. In a larger network the default, which estimates
# communities and classes of degrees, needs no labels.

import matplotlib.pyplot as plt
import numpy as np

from nodecopy import SameLabel, datasets, inference

club = datasets.load("karate")
NAMES = ["density", "transitivity", "modularity"]
ties = inference.bootstrap(club, NAMES, model=SameLabel(), n=400, rng=0)
print(ties)
ties.plot()
plt.show()

# %%
# Another question has another answer: if the *members* were a sample of a population, the club would vary
# more.

members = inference.bootstrap(club, NAMES, resample="nodes", n=400, rng=0)
for name in NAMES:
    errors = [float(result[name].standard_error) for result in (ties, members)]
    print(f"{name}: standard error {errors[0]:.3f} for new ties, {errors[1]:.3f} for new members")

# %%
# More than chance?
# -----------------
# Graphs with the same degrees are the usual null model. The factions are far outside of what they explain,
# the share of closed triangles is not.

results = inference.null_test(club, ["transitivity", "modularity"], null="configuration", n=499, rng=0)
print(results.to_pandas()[["observed", "null_mean", "z_score", "p_value"]].round(3))
results.plot()
plt.show()

# %%
# Who leads?
# ----------
# A band that holds for all members at once, and the share of samples in which a member is among the first
# two. Donors have a similar number of ties here. The club is small, so that its leaders have few donors: a
# warning says that standard errors are too small.

rule = inference.DegreeClasses("labels")
rank = inference.bootstrap(club, "pagerank", model=rule, n=400, simultaneous=True, rng=0)
share = rank.top_share(2)
for position in np.argsort(-share)[:4]:
    estimate = rank["pagerank"]
    low, high = np.asarray(estimate.low)[position], np.asarray(estimate.high)[position]
    print(
        f"member {club.node_ids[position]}: among the first two in {share[position]:.0%} of the samples, "
        f"PageRank {low:.3f} to {high:.3f}"
    )
axes = rank.plot()
axes.set_ylabel("PageRank")
plt.show()
