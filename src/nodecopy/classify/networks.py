"""Networks (MLP, GCN, APPNP and DFNet), and how the networks of many trials are trained together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.random import SeedSequence
from scipy import sparse

from nodecopy._core.imports import check_name
from nodecopy._core.random import child
from nodecopy.classify.base import Classifier, ClassifierSeeds, Prediction, Trial, check_trials
from nodecopy.errors import InputError
from nodecopy.features.scaling import FeatureScaling, WeightScaling
from nodecopy.nn.engine import Engine
from nodecopy.nn.filters import FilterConfig
from nodecopy.nn.networks import KIPF, TrainingConfig, check_features
from nodecopy.nn.training import LabelledNodes, check_device

ANY_DATA: dict[str, Any] = {"features": "auto", "weights": "auto"}
DEFAULT: dict[str, Any] = {**ANY_DATA, "weight_decay": 5e-3}  # the decay suits features of unit length
GNN_BENCHMARK = TrainingConfig(
    n_hidden=64, bias=True, features="binary", dropout=0.8, weight_decay=1e-3, n_epochs=2000, patience=50
)
G3NN = TrainingConfig(n_hidden=64, bias=True, drop_input=False, decay_all=True, n_epochs=2000, patience=200)
APPNP_KIPF = replace(KIPF, propagation="pagerank", n_hidden=64, weight_decay=5e-3)
AnyConfig = TypeVar("AnyConfig", bound=TrainingConfig)


class TrainingBatch:
    """Trials whose networks are trained together by an engine."""

    def __init__(
        self,
        trials: Sequence[Trial],
        config: TrainingConfig,
        device: str,
        *,
        keep_networks: bool = False,
        counts: str = "unit",
        create_engine: Callable[..., Any] = Engine,
    ) -> None:
        self.trials, self.keep_networks, where = trials, keep_networks, check_device(device)
        first = trials[0]
        if first.graph.features is None:
            got = "this one has none. LabelPropagation needs none."
            raise InputError(f"a graph must have features to be classified by networks; {got}")
        check_features(first.graph)
        self.feature_scaling = FeatureScaling.fit(
            first.graph.features, config.features, encoder=first.graph.feature_encoder, counts=counts
        )
        features = self.feature_scaling.apply(first.graph.features)
        for trial in trials:
            same_labels = np.array_equal(
                cast(Any, trial.graph.label_codes), cast(Any, first.graph.label_codes)
            )
            if trial.graph.features is not first.graph.features or not same_labels:
                raise InputError("trials that run together must share their features and labels.")
        # Trials often share a graph, whose matrices are then computed once.
        graphs = {id(trial.graph): trial.graph.adjacency for trial in trials}
        scalings = {key: WeightScaling.fit(adjacency, config.weights) for key, adjacency in graphs.items()}
        scaled = {key: scalings[key].apply(adjacency) for key, adjacency in graphs.items()}
        self.weight_scalings = [scalings[id(trial.graph)] for trial in trials]
        self.observed = [scaled[id(trial.graph)] for trial in trials]
        self.engine = create_engine(config, features, first.n_classes, self.observed, where)

    def seeds(self, purpose: int, per_trial: int = 1) -> list[SeedSequence]:
        roots = [child(trial.rng, purpose) for trial in self.trials]
        return [child(root, number) for root in roots for number in range(per_trial)]

    def train(
        self, adjacencies: Sequence[sparse.csr_array], seeds: Sequence[SeedSequence], **options: Any
    ) -> Any:
        """Return networks trained on graphs, as many for each trial."""
        per_trial = len(adjacencies) // len(self.trials)
        trials = [trial for trial in self.trials for _ in range(per_trial)]
        targets = [LabelledNodes(trial.train, trial.codes[trial.train], trial.weights) for trial in trials]
        if self.engine.config.patience:
            if not all(trial.has_validation for trial in trials):
                reason = "since training stops by the loss on its nodes. Networks with patience=0 need none."
                raise InputError("validation", f"must be given, {reason}")
            watched: list[Any] = [(trial.validation, trial.codes[trial.validation]) for trial in trials]
            options["validation"] = [LabelledNodes(*pair) for pair in watched]
        return self.engine.train(adjacencies, targets, seeds, **options)

    def predict(self, networks: Any, n_weight_samples: int = 0) -> list[Prediction]:
        """Return the mean prediction of each trial's networks on its observed graph."""
        averages = self.engine.predict(networks, n_weight_samples)
        if not self.keep_networks:
            return [Prediction(*average) for average in averages]
        n_networks = len(networks) if isinstance(networks, list) else len(networks.weights[0])
        per_trial, predictions = n_networks // len(self.trials), []
        for number, average in enumerate(averages):
            models = slice(number * per_trial, (number + 1) * per_trial)
            scalings = self.feature_scaling, self.weight_scalings[number]
            kept = self.engine.keep(networks, models, n_weight_samples, scalings)
            predictions.append(replace(Prediction(*average), networks=kept))
        return predictions

    def predict_observed(self) -> list[Prediction]:
        """Return the predictions of networks that are trained on the observed graphs."""
        return self.predict(self.train(self.observed, self.seeds(ClassifierSeeds.NETWORKS)))


class BatchClassifier(Classifier):
    """A classifier that trains the networks of many trials together."""

    def build_batch(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> TrainingBatch:
        """Return trials with the same classes, for which networks can be trained."""
        raise NotImplementedError

    def fit_batch(self, batch: TrainingBatch) -> list[Prediction]:
        """Return the prediction of each trial of a batch."""
        return batch.predict_observed()

    def fit_trials(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> list[Prediction]:
        trials, groups = check_trials(trials), dict[bytes, list[int]]()
        if not trials:
            raise InputError("trials", "must hold at least one trial; got none.")
        for number, trial in enumerate(trials):  # those with the same classes are trained together
            groups.setdefault(trial.classes.tobytes(), []).append(number)
        predictions: dict[int, Prediction] = {}
        for numbers in groups.values():
            batch = self.build_batch([trials[number] for number in numbers], keep_networks=keep_networks)
            predictions |= zip(numbers, self.fit_batch(batch), strict=True)
        return [predictions[number] for number in range(len(trials))]

    def change_config(self, config: AnyConfig) -> AnyConfig:
        """Return a configuration with the parameters of this classifier that are not ``None``."""
        values = {field.name: getattr(self, field.name, None) for field in fields(config)}
        try:
            return replace(config, **{name: value for name, value in values.items() if value is not None})
        except InputError as error:
            name, *message = error.args
            raise InputError(f"{name} of {type(self).__name__}", *message) from None


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkClassifier(BatchClassifier):
    """A two-layer network that is trained on the observed graph.

    A parameter that is ``None`` has the preset's value.

    Parameters
    ----------
    preset
        ``"kipf"``: Kipf and Welling (2017), 200 epochs, features by ``"rows"`` and ``"raw"`` weights.
        ``"default"``: the same with ``"auto"`` features and weights and a weight decay of 0.005; a GCN also
        has biases, as in PyTorch Geometric.
        ``"gnn-benchmark"``: Shchur et al. (2018), early stopping, ``"binary"`` features, ``"raw"`` weights.
    n_hidden
        Hidden units.
    bias
        Whether both layers have a bias.
    features
        ``"auto"``: ``"unit"`` for word counts, otherwise ``"standardise"``. ``"unit"``: each node's features
        have a length of one; ``"rows"``: a sum of one; ``"standardise"``: each column has mean 0 and
        deviation 1; ``"binary"``: present or not; ``"none"``.
    weights
        Of edges. ``"auto"``: ``"log"`` for heavy-tailed weights, otherwise ``"raw"``, as they are.
        ``"log"``: log(1 + weight / smallest weight); ``"binary"``: all one.
    dropout
        Share of features and hidden units that a training step drops.
    learning_rate, weight_decay
        Of Adam; the decay is that of the first layer's weights.
    n_epochs
        Epochs of training, at most.
    patience
        Epochs without a lower validation loss before training stops; 0 for no early stopping.
    device
        ``"cpu"`` or ``"cuda"``.
    """

    presets: ClassVar[dict[str, TrainingConfig]]

    preset: str = "default"
    n_hidden: int | None = None
    bias: bool | None = None
    features: str | None = None
    weights: str | None = None
    dropout: float | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    n_epochs: int | None = None
    patience: int | None = None
    device: str = "cpu"

    def build_config(self) -> TrainingConfig:
        """Return the preset with the parameters that are given."""
        name = check_name(self.preset, self.presets, f"preset of {type(self).__name__}")
        return self.change_config(self.presets[name])

    @property
    def uses_validation(self) -> bool:
        return self.build_config().patience > 0

    def build_batch(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> TrainingBatch:
        return TrainingBatch(trials, self.build_config(), self.device, keep_networks=keep_networks)


@dataclass(kw_only=True, eq=False, repr=False)
class GCN(NetworkClassifier):
    """Classify nodes by two graph convolutions (Kipf and Welling, 2017).

    Parameters
    ----------
    preset
        As in :class:`NetworkClassifier`, or ``"g3nn"``: Ma et al. (2019), with early stopping, dropout of
        hidden units only, and a decay of all weights.
    rank
        Replace the adjacency by its truncated SVD of this rank (GCN-SVD; Entezari et al., 2020).
    n_hidden, ..., device
        As in :class:`NetworkClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import GCN
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> fitted = GCN(n_epochs=50).fit(club, [0, 33], rng=0)  # two labels
    >>> fitted.predict()[[1, 32]].tolist()
    ['Mr. Hi', 'Officer']
    """

    presets = {  # noqa: RUF012
        "default": replace(KIPF, bias=True, **DEFAULT),
        "kipf": KIPF,
        "gnn-benchmark": GNN_BENCHMARK,
        "g3nn": G3NN,
    }

    rank: int | None = None


class MLP(NetworkClassifier):
    """Classify nodes by a two-layer perceptron on their features alone.

    Parameters are those of :class:`NetworkClassifier`.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import MLP
    >>> club = datasets.load("karate")
    >>> club = club.replace(features=club.adjacency)  # neighbours as features
    >>> MLP().fit(club, [0, 33], rng=0).predict()[[0, 33]].tolist()
    ['Mr. Hi', 'Officer']
    """

    presets = {  # noqa: RUF012
        "default": replace(KIPF, propagation="none", **DEFAULT),
        "kipf": replace(KIPF, propagation="none"),
        "gnn-benchmark": replace(GNN_BENCHMARK, propagation="none"),
    }
    uses_edges = False


@dataclass(kw_only=True, eq=False, repr=False)
class APPNP(NetworkClassifier):
    """Classify nodes by a perceptron whose logits are propagated by PageRank (Gasteiger et al., 2019).

    Parameters
    ----------
    n_steps
        Steps of propagation; 10 in all presets.
    teleport
        Probability of returning to the node itself in each step; 0.1 in all presets.
    preset, n_hidden, ..., device
        As in :class:`NetworkClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import APPNP
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> fitted = APPNP(n_epochs=50).fit(club, [0, 33], rng=0)  # two labels
    >>> fitted.predict()[[1, 32]].tolist()
    ['Mr. Hi', 'Officer']
    """

    presets = {  # noqa: RUF012
        "default": replace(APPNP_KIPF, **ANY_DATA),
        "kipf": APPNP_KIPF,
        "gnn-benchmark": replace(APPNP_KIPF, features="binary", patience=50, n_epochs=2000),
    }

    n_steps: int | None = None
    teleport: float | None = None


@dataclass(eq=False, repr=False)
class DFNet(BatchClassifier):
    """Classify nodes by DFNet-ATT: densely connected feedback-looped filters with attention.

    A parameter that is ``None`` has the authors' value (Wijesinghe and Wang, 2019), given in parentheses.

    Parameters
    ----------
    widths
        Hidden units of each layer and each of the four attention heads (8, 16, 32, 64).
    features, weights
        As in :class:`NetworkClassifier`; the authors' are ``"none"`` and ``"raw"``.
    dropout
        Share of hidden units that a training step drops (0.9).
    learning_rate
        Of Adam (0.002).
    n_epochs, patience, device
        As in :class:`NetworkClassifier` (200 and 0).

    Notes
    -----
    There are four differences from the authors' code. The last of the 200 epochs counts, where theirs shows
    the test accuracy after every epoch. (The validation loss is lowest after a few epochs, long before the
    accuracy is highest.) Normalisation takes mean and variance of the graph at hand, where theirs predicts
    with a moving average that has not converged. The Laplacian's largest eigenvalue counts as 2, its bound.
    Classes have equal weights; theirs are shifted by one class.

    The filters multiply rounding errors by up to 36, so the probabilities of a trial may differ visibly when
    it runs together with other trials.

    Examples
    --------
    >>> import numpy as np
    >>> from nodecopy import datasets
    >>> from nodecopy.classify import DFNet
    >>> club = datasets.load("karate").replace(features=np.eye(34))
    >>> small = DFNet((8,), n_epochs=50, learning_rate=0.02)
    >>> small.fit(club, [0, 1, 32, 33], rng=0).score() > 0.8
    True
    """

    widths: tuple[int, ...] | None = None
    _: KW_ONLY
    features: str | None = "auto"
    weights: str | None = "auto"
    dropout: float | None = None
    learning_rate: float | None = None
    n_epochs: int | None = None
    patience: int | None = None
    device: str = "cpu"

    def build_batch(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> TrainingBatch:
        return TrainingBatch(
            trials, self.change_config(FilterConfig()), self.device, keep_networks=keep_networks
        )
