"""DFNet and DFNet-ATT (Wijesinghe and Wang, 2019): densely connected spectral filters with feedback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from nodecopy._core.checks import check_integer, check_type
from nodecopy.classify.base import Trial
from nodecopy.classify.networks import BatchClassifier, TrainingBatch
from nodecopy.errors import InputError
from nodecopy.nn.filters import FilterConfig

PLAIN = FilterConfig(n_heads=0, widths=(8, 16, 32, 64, 128), weight_decay=0.18)


@dataclass(eq=False, repr=False)
class DFNet(BatchClassifier):
    """Classify nodes by densely connected layers of feedback-looped filters.

    A parameter that is ``None`` has the authors' value, given in parentheses for DFNet-ATT and, where it
    differs, for plain DFNet.

    Parameters
    ----------
    attention
        Whether layers average over neighbours with attention (DFNet-ATT) or not (DFNet).
    widths
        Hidden units of each layer and each attention head (8, 16, 32, 64; plain: 8, 16, 32, 64, 128).
    n_heads
        Attention heads (4); must be left out without attention.
    features, weights
        As in :class:`NetworkClassifier`; the authors' are ``"none"`` and ``"raw"``.
    dropout, attention_dropout
        Shares of hidden units and of attention weights that a training step drops (0.9 and 0.5).
    feedback, feedforward
        Orders of the filter's denominator and numerator (5 and 3).
    radius
        Bound on the feedback coefficients, at most 1 (0.9).
    shifted
        Whether the filter is applied to L - I, as the authors do, or to the Laplacian L, for which it is
        fitted (True).
    learning_rate, weight_decay
        Of Adam (0.002), and of all kernels (0.0018; plain: 0.18).
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
    >>> small = DFNet(widths=(8,), n_epochs=50, learning_rate=0.02)
    >>> small.fit(club, [0, 1, 32, 33], rng=0).score() > 0.8
    True
    """

    attention: bool = True
    _: KW_ONLY
    widths: tuple[int, ...] | None = None
    n_heads: int | None = None
    features: str | None = "auto"
    weights: str | None = "auto"
    dropout: float | None = None
    attention_dropout: float | None = None
    feedback: int | None = None
    feedforward: int | None = None
    radius: float | None = None
    shifted: bool | None = None
    learning_rate: float | None = None
    weight_decay: float | None = None
    n_epochs: int | None = None
    patience: int | None = None
    device: str = "cpu"

    def build_batch(self, trials: Sequence[Trial], *, keep_networks: bool = False) -> TrainingBatch:
        check_type(self.attention, bool, "attention of DFNet", "True or False")
        config = self.change_config(FilterConfig() if self.attention else PLAIN)
        if not self.attention and config.n_heads:
            raise InputError("n_heads of DFNet", f"must be left out without attention; got {config.n_heads}.")
        check_integer(config.n_heads, "n_heads of DFNet", low=int(self.attention))
        return TrainingBatch(trials, config, self.device, keep_networks=keep_networks)
