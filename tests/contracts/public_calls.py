"""Every public callable as a call that succeeds, for suites that change one argument at a time.

The names are those of ``docs/api.md``. Functions are called. Classes that are fitted are constructed, fitted
and used, since constructors store what ``fit`` checks; then their methods are called. A new public name is
covered as soon as ``valid_arguments.py`` knows what it needs.
"""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from nodecopy import (
    Balanced,
    Jaccard,
    KeepByDegree,
    NearestNeighbours,
    NodeCopying,
    SameLabel,
    Weighted,
    to_pyg,
)
from nodecopy.attacks import Attack, GlobalDICE
from nodecopy.classify import Classifier, GraphClassifier
from nodecopy.edge_tables import (
    EdgeTableCopying,
    JaccardTable,
    NearestNeighboursTable,
    SameLabelTable,
    WeightedTable,
)
from nodecopy.inference import DegreeClasses, bootstrap
from nodecopy.inference.resampling import NodeResampler
from nodecopy.io import FeatureEncoder
from nodecopy.links import LinkPredictor
from nodecopy.models import GraphModel
from nodecopy.nn.pyg import NodeCopy
from nodecopy.recommend import Recommender
from tests.contracts.valid_arguments import SETTINGS, own_arguments, shared_arguments

RULES = (SameLabel, NearestNeighbours, Jaccard, Weighted, Balanced, KeepByDegree, DegreeClasses)
TABLE_RULES = (JaccardTable, NearestNeighboursTable, SameLabelTable, WeightedTable)
TABLES = {"DuckDB", "SameLabelTable", "NearestNeighboursTable", "WeightedTable", "JaccardTable"}
"""Classes whose methods the package calls."""
REFERENCE = Path(__file__).parents[2] / "docs" / "api.md"
NAMES = re.findall(r"^   (nodecopy\.[\w.]+)$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)


def _words(text: str) -> list[str]:
    return text.split()


NOT_CALLED = _words("""
    GraphModel Classifier Attack TargetedAttack Defence Recommender EmbeddingRecommender

    ExpectedAdjacency Split Prediction Perturbation AttackedState
    Correction BootstrapResult Estimate SignificanceTests
    GraphDifference Comparison Evaluation Explanation
    CommunityStability Links LinkExplanation Donors
    NodeReport EdgeReport

    Spark fetch
""")
"""Classes to inherit from, whose methods are called on subclasses; values that the package returns, which
store what it computed; and what needs a cluster, the network or large files."""
METHODS = _words("""
    fit sample sample_many draw_donors copy log_probability monte_carlo_adjacency edge_probabilities
    predict predict_proba uncertainty score calibrate table to_pandas fit_trials
    undefended undefended_proba certify nearest_donors score_suspicion from_classifier attack
    recommend recommend_new similar_items similar_users explain evaluate partial_fit tune
    from_edges from_table replace subgraph positions with_label_names at_least select union difference
    missing doubtful denoise
    neighbours has_edge flip flip_feature save write transform apply
""")
"""Methods that users call; other public ones are called by the package, on classes of users."""


class Call(NamedTuple):
    """A callable with arguments that it accepts."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    parameters: dict[str, str]
    """The annotation of each parameter that can be changed."""
    code: Any
    """The function itself, which classes may share."""


def import_object(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def build_calls(names: list[str]) -> Iterator[Call]:
    """Return the calls of public names."""
    for name in names:
        short = name.rpartition(".")[2]
        if short in NOT_CALLED:
            continue
        value = import_object(name)
        if not inspect.isclass(value):
            yield _build_call(name, value)
            continue
        use = find_use(value)
        settings = _build_call(name, value, {} if use is None else SETTINGS)
        if use is not None:
            settings = settings._replace(function=functools.partial(_construct_and_use, value, use))
        yield settings
        for method in METHODS if short not in TABLES else []:
            if callable(getattr(value, method, None)):
                call = _build_call(f"{name}.{method}", getattr(value, method))
                yield call._replace(function=functools.partial(_call_method, settings, method))


def _build_call(name: str, function: Any, settings: dict[str, Any] | None = None) -> Call:
    """Return the call with the arguments that are required or that make it fast."""
    signature = inspect.signature(function).parameters.values()
    takes = [p for p in signature if p.name != "self" and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    parts, own = name.split("."), own_arguments()
    special = (settings or {}) | own.get(parts[-1], {}) | own.get(".".join(parts[-2:]), {})
    known = shared_arguments() | special
    required = [p.name for p in takes if p.default is p.empty]
    if missing := set(required) - known.keys():
        raise LookupError(f"{name}: valid_arguments.py has no value of {', '.join(missing)}")
    wanted = {*required, *special, "train", "rng", "k"}
    arguments = {p.name: known[p.name] for p in takes if p.name in wanted}
    if any(p.kind is p.VAR_KEYWORD for p in signature):
        arguments |= {key: value for key, value in special.items() if key not in arguments}
    parameters = {p.name: str(p.annotation) for p in takes}
    code = getattr(function, "__func__", function)
    return Call(name, functools.partial(_call, function), arguments, parameters, code)


def _call(function: Any, **arguments: Any) -> Any:
    result = function(**arguments)
    return list(result) if inspect.isgenerator(result) else result


def _construct_and_use(cls: type, use: Callable[[Any], Any], **settings: Any) -> Any:
    made = cls(**settings)
    use(made)
    return made


def _call_method(settings: Call, method: str, **arguments: Any) -> Any:
    """Call a method of a fitted object, a copy for every call."""
    if settings.name not in FITTED:
        FITTED[settings.name] = settings.function(**settings.arguments)
    fitted = FITTED[settings.name]
    if not isinstance(fitted, EdgeTableCopying):  # it holds an open engine
        fitted = copy.deepcopy(fitted)
    return _call(getattr(fitted, method), **arguments)


FITTED: dict[str, Any] = {}


def find_use(cls: type) -> Callable[[Any], Any] | None:
    """Return how an object of the class is fitted and used, where ``fit`` checks its settings."""
    shared, own = shared_arguments(), own_arguments()
    graph, log, train = shared["graph"], shared["interactions"], shared["train"]
    uses: dict[tuple[type, ...], Callable[[Any], Any]] = {
        RULES: lambda donors: NodeCopying(donors).fit(graph).sample(rng=0),
        TABLE_RULES: lambda donors: EdgeTableCopying(donors).fit(**own["EdgeTableCopying.fit"]).sample(rng=0),
        (EdgeTableCopying,): lambda model: model.fit(**own["EdgeTableCopying.fit"]),
        (FeatureEncoder,): lambda encoder: encoder.fit({"a": [1, 2, 3], "b": ["x", "y", "x"]}),
        (GraphModel,): lambda model: model.fit(graph, rng=0).sample(rng=0),
        (NodeResampler,): lambda model: bootstrap(
            graph, "triangles", model=model, n=8, resample="nodes", rng=0
        ),
        (GraphClassifier,): lambda model: model.fit(graph.features, graph.label_codes).predict(
            graph.features
        ),
        (Classifier,): lambda model: model.fit(graph, train, rng=0).predict_proba(),
        (LinkPredictor,): lambda model: model.fit(graph, rng=0).missing(2),
        (Recommender,): lambda model: model.fit(log, rng=0).recommend(k=2),
        (GlobalDICE,): lambda attack: attack.attack(graph, budget=1, rng=0),
        (Attack,): lambda attack: attack.attack(graph, [2], budget=1, train=train, rng=0),
        (NodeCopy,): lambda transform: transform(to_pyg(graph)),
    }
    return next((use for classes, use in uses.items() if issubclass(cls, classes)), None)
