"""Standard errors and intervals of statistics of one network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nodecopy._core.checks import check_choice, check_integer, check_real, show
from nodecopy._core.files import PathLike
from nodecopy._core.messages import mute_data_warnings, warn_about_data
from nodecopy._core.parallel import track
from nodecopy._core.random import Rng, child
from nodecopy.errors import InputError
from nodecopy.inference.diagnosis import ESTIMATED_COMMUNITIES, diagnose
from nodecopy.inference.resampling import (
    InferenceSeeds,
    Samples,
    Sampling,
    collect_values,
    measure_samples,
    start_sampling,
)
from nodecopy.inference.results import (
    METHODS,
    BootstrapResult,
    Diagnostic,
    count_needed_samples,
    estimate_interval,
)
from nodecopy.inference.statistics import Measure, Statistic, Values, prepare_measure
from nodecopy.io import GraphLike

TOO_FEW_SAMPLES = (
    "{n} samples are too few for intervals with a level of {level:g}, so that they cover less often. Draw at "
    "least {n_needed}."
)
N_INNER = 25
"""Samples of every sample, from which ``"studentised"`` takes its standard error."""


def bootstrap(
    graph: GraphLike,
    statistic: Statistic,
    *,
    model: Any = None,
    n: int = 500,
    level: float = 0.95,
    method: str = "basic",
    target: str = "edges",
    simultaneous: bool = False,
    library: str | None = None,
    workers: int = 1,
    processes: bool = False,
    store: PathLike | None = None,
    rng: Rng = None,
) -> BootstrapResult:
    """Return standard errors and intervals of statistics of one network.

    The interval is for the expectation of the statistic over drawing the network again. The observed value is
    an unbiased estimate of it, if the statistic was chosen before the network was seen, and so the interval
    lies around that value; the samples give its width.

    Parameters
    ----------
    graph
        The observed graph, or what :func:`.as_graph` converts.
    statistic
        A name (see :func:`.statistic_names`), a function of a graph, or several of them. A function returns a
        number, one number per node, or a mapping from nodes or edges to numbers; a number if
        ``target="nodes"``. An edge has an interval from the samples that contain it, if those are at
        least 20. Modularity is that of the labels; without labels, of communities that
        :func:`.spectral_communities` finds in each graph again, as many as in the observed one.
    model
        How samples are drawn. For ``target="edges"`` a graph model or a donor rule, by default node copying by
        :class:`.DegreeClasses` (:class:`.DirectedCopying` of a directed graph). Blocks of block models are
        the labels or, without labels, communities of :func:`.spectral_communities`. For ``target="nodes"``
        :class:`.NodeBootstrap` (default), :class:`.NodeSubsampling` or :class:`.LatentPositionBootstrap`.
    n
        Number of samples, 500 by default.
    level
        Probability with which an interval should hold its parameter, 0.95 by default.
    method
        ``"basic"`` (default): the quantiles of the deviations of samples from their mean, turned around the
        observed value. ``"normal"``: 1.96 standard errors to each side, for level 0.95. ``"percentile"``:
        quantiles of the samples, which are off if the samples' mean is. ``"studentised"``: basic, with
        deviations divided by the standard error in each sample, from 25 samples of every sample.
    target
        ``"edges"`` (default): the nodes are given, edges are drawn again. ``"nodes"``: nodes are drawn
        again from their population. The second variance contains the first.
    simultaneous
        Whether the intervals of a statistic of nodes hold for all nodes at once; each by itself by default.
        They are as many standard errors wide as the largest deviation over nodes, whatever ``method``.
    library
        Whose objects functions take: ``"nodecopy"``, ``"networkx"`` or ``"igraph"``; by default that of
        ``graph``.
    workers
        Number of threads, 1 by default.
    processes
        Whether workers are processes, which makes functions in Python faster, such as those of NetworkX;
        compiled statistics do not need it. Processes are forked: not on Windows, and not for functions that
        use torch.
    store
        A folder that keeps the values of finished samples. A run that was stopped continues there, and a
        larger ``n`` only draws the additional samples. Memory does not grow with ``n`` then. The samples of
        samples of ``"studentised"`` are not kept.
    rng
        Seed or generator; that of the store, if it is left out when a run continues.

    Examples
    --------
    >>> from nodecopy import SameLabel, datasets
    >>> from nodecopy.inference import bootstrap
    >>> club = datasets.load("karate")
    >>> result = bootstrap(club, ["density", "transitivity"], model=SameLabel(), n=100, rng=0)
    >>> round(result["transitivity"].observed, 3), result.target
    (0.256, 'edges')

    A function of a NetworkX graph that returns one number per node:

    >>> import networkx as nx
    >>> network = nx.karate_club_graph()
    >>> donors = SameLabel([0] * 17 + [1] * 17)
    >>> scores = bootstrap(network, nx.degree_centrality, model=donors, n=20, rng=0)
    >>> len(scores["degree_centrality"].low)
    34
    """
    check_integer(n, "n of bootstrap", low=2)
    check_integer(workers, "workers of bootstrap", low=1)
    check_real(level, "level of bootstrap", low=0.01, high=0.9999)
    check_choice(method, "method of bootstrap", METHODS)
    check_choice(target, "target of bootstrap", ["edges", "nodes"])
    if simultaneous and method != "basic":
        raise InputError(
            "method",
            f"must be left out if intervals are simultaneous; got {show(method)}. Their width is a "
            "quantile of the largest deviation over nodes.",
        )
    observed, measure = prepare_measure(statistic, graph, library, fixed_nodes=target == "edges")
    observed_values = measure(observed)
    if target == "nodes":
        _check_has_no_nodes(observed_values, measure.keys, observed.n_nodes)
    sampling = start_sampling(
        observed,
        measure,
        observed_values,
        model,
        call="bootstrap",
        n=n,
        target=target,
        workers=workers,
        processes=processes,
        store=store,
        rng=rng,
    )
    sampler = sampling.sampler
    values = collect_values(sampling.samples, sampling.shapes, n, sampling.store)
    errors = _inner_errors(sampling, measure, n) if method == "studentised" else {}
    settings: dict[str, Any] = {"level": level, "method": method, "simultaneous": simultaneous}
    settings["factor"] = getattr(sampler, "deviation_factor", 1.0)
    estimates = [
        estimate_interval(name, value, values[name], errors=errors.get(name), **settings)
        for name, value in observed_values.items()
    ]
    problems = diagnose(sampler, estimates, values)
    if n < (n_needed := count_needed_samples(level)) and method != "normal":
        problems.append(Diagnostic(None, TOO_FEW_SAMPLES.format(n=n, level=level, n_needed=n_needed)))
    if measure.estimates_communities:
        problems.append(Diagnostic("modularity", ESTIMATED_COMMUNITIES))
    for problem in problems:
        warn_about_data(problem.text)
    return BootstrapResult(
        estimates=tuple(estimates),
        n=n,
        level=level,
        method=method,
        target=target,
        model=repr(sampler),
        deviation_factor=settings["factor"],
        simultaneous=simultaneous,
        node_ids=observed.node_ids,
        keys=measure.keys,
        values=values,
        problems=tuple(problems),
    )


def _check_has_no_nodes(values: Values, keys: Mapping[str, Any], n_nodes: int) -> None:
    """Raise an error if a statistic belongs to nodes or edges, which are others in every sample."""
    for name, value in values.items():
        if name in keys or np.shape(value) == (n_nodes,):
            raise InputError(
                "statistic",
                f"must not have a value per node or edge where nodes are drawn again, as {name} "
                "has: the nodes of a sample are others. Draw edges only, or choose a number such as the "
                "largest value.",
            )


def _inner_errors(sampling: Sampling, measure: Measure, n: int) -> Samples:
    """Return the standard error of each statistic in each sample, by fitting the model to the sample."""
    sampler, seed = sampling.sampler, sampling.seed
    errors: dict[str, list[Any]] = {}
    for number in track(range(n), "standard error"):
        sample = sampler.draw(child(seed, InferenceSeeds.SAMPLES, number))
        with mute_data_warnings():
            inner = type(sampler)(**sampler.get_params(deep=False)).fit(
                sample, rng=child(seed, InferenceSeeds.FIT)
            )
            inner_seed = child(seed, InferenceSeeds.INNER, number)
            values = collect_values(
                measure_samples(inner, measure, N_INNER, inner_seed), sampling.shapes, N_INNER
            )
        for name, rows in values.items():
            errors.setdefault(name, []).append(
                rows.std(axis=0, ddof=1) * getattr(inner, "deviation_factor", 1.0)
            )
    return {name: np.array(rows) for name, rows in errors.items()}
