"""Bayesian personalised ranking (Rendle et al., 2009): one training loop for every embedding network.

A network turns its weights and a graph into embeddings of users and items, whose inner products are
scores. Training draws, for every observed pair (u, i), an item j that u did not take, and minimises
-ln sigma(s_ui - s_uj) and a penalty by Adam. Which pairs may serve as negatives is an argument.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn
from torch.nn import functional

from nodecopy._core.csr import IntArray
from nodecopy._core.random import child
from nodecopy._core.validation import check_integer, check_real
from nodecopy.errors import InputError
from nodecopy.interactions import Interactions
from nodecopy.metrics import ranking
from nodecopy.nn.adam import Descent
from nodecopy.nn.devices import checked_device
from nodecopy.recommend.base import Recommender
from nodecopy.recommend.negatives import NegativeSampler

Embeddings = tuple[Tensor, Tensor]


class EmbeddingNetwork(nn.Module):
    """Free embeddings of users and items, and what a subclass makes of them on a graph."""

    def __init__(self, n_users: int, n_items: int, size: int) -> None:
        super().__init__()
        self.users, self.items = n_users, n_items
        self.free = nn.Parameter(torch.empty(n_users + n_items, size))

    def initialise(self, draws: torch.Generator) -> None:
        """Xavier's uniform for every matrix, from one generator, whatever the device."""
        for weight in self.parameters():
            nn.init.xavier_uniform_(weight, generator=draws)

    def on(self, matrix: sparse.csr_array, device: torch.device) -> Any:
        """A users x items matrix, binary or expected, in the form that :meth:`forward` takes."""
        return None

    def forward(self, graph: Any, draws: torch.Generator | None = None) -> Embeddings:
        """Embeddings of users and items; ``draws`` is given in training only, for dropout."""
        return self.free[: self.users], self.free[self.users :]

    def penalised(self, embeddings: Embeddings) -> Embeddings:
        """The embeddings whose squares the penalty adds up."""
        return self.free[: self.users], self.free[self.users :]


@dataclass(eq=False)
class BPRRecommender(Recommender):
    """What networks trained by pairs share.

    Parameters
    ----------
    size
        Length of the embeddings.
    learning_rate, batch_size
        Of Adam; a batch holds so many observed pairs, each with one negative.
    regularisation
        Weight of half the squared embeddings of a batch's users and items, per pair.
    epochs
        Rounds over the observed pairs, at most.
    check_every, patience
        With validation interactions, Recall@20 on them (or at the number of items, if there are fewer) is
        computed every ``check_every`` epochs. The best weights are kept, and after ``patience`` checks
        without a better one training ends.
    device
        ``"cpu"`` or ``"cuda"``.

    Attributes
    ----------
    n_epochs_
        Epochs after which the weights were as they are kept.
    """

    size: int = 64
    learning_rate: float = 0.005
    batch_size: int = 2048
    regularisation: float = 0.02
    epochs: int = 300
    check_every: int = 5
    patience: int = 8
    device: str = "cpu"

    n_epochs_ = 0

    @abstractmethod
    def _network(self, interactions: Interactions) -> EmbeddingNetwork:
        """A network for these users and items, its weights not yet drawn."""

    def embed(self, matrix: sparse.csr_array | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
        """Embeddings of users and items by the trained weights on another users x items matrix.

        ``matrix`` may hold probabilities; the observed interactions by default.
        """
        known, device = self._fitted(), checked_device(self.device)
        network = self._network(known).to(device)
        network.load_state_dict({name: torch.from_numpy(one) for name, one in self._weights.items()})
        return _embedded(network, known.matrix if matrix is None else matrix, device)

    def _check(self) -> None:
        name = type(self).__name__
        for setting in ("size", "batch_size", "epochs", "check_every", "patience"):
            check_integer(getattr(self, setting), f"{setting} of {name}", low=1)
        for setting in ("learning_rate", "regularisation"):
            check_real(getattr(self, setting), f"{setting} of {name}", low=0.0)
        checked_device(self.device)

    def _fit(self, interactions: Interactions, validation: Interactions | None, seed: SeedSequence) -> None:
        self._train(interactions, validation, seed, interactions.matrix)

    def _train(
        self,
        interactions: Interactions,
        validation: Interactions | None,
        seed: SeedSequence,
        forbidden: sparse.csr_array,
    ) -> None:
        """Train with negatives outside the ``forbidden`` pairs, which hold the observed ones."""
        device = checked_device(self.device)
        network = self._network(interactions)
        network.initialise(torch.Generator().manual_seed(int(child(seed, 0).generate_state(1)[0])))
        network = network.to(device)
        training = _Training(self, network, interactions, forbidden, child(seed, 1))
        watch = None if validation is None else _Watch(network, interactions, validation, training.graph)
        self.n_epochs_ = self.epochs
        for epoch in range(1, self.epochs + 1):
            training.epoch()
            if watch is None or epoch % self.check_every:
                continue
            watch.look(epoch)
            if epoch - watch.best_epoch >= self.patience * self.check_every:
                break
        if watch is not None:
            self.n_epochs_ = watch.best_epoch
            network.load_state_dict(watch.best)
        self._weights = {name: one.cpu().numpy().copy() for name, one in network.state_dict().items()}
        self._users, self._items = _embedded(network, interactions.matrix, device)

    def _score(self, users: IntArray) -> NDArray[Any]:
        return np.asarray(self._users[users] @ self._items.T)

    def _state(self) -> dict[str, Any]:
        weights = {f"weight {name}": one for name, one in self._weights.items()}
        return {"users": self._users, "items": self._items, "n_epochs": self.n_epochs_, **weights}

    def _restore(self, state: dict[str, Any]) -> None:
        self._users, self._items, self.n_epochs_ = state["users"], state["items"], int(state["n_epochs"])
        names = [name for name in state if name.startswith("weight ")]
        self._weights = {name.removeprefix("weight "): state[name] for name in names}


class _Training:
    """What stays the same from epoch to epoch."""

    def __init__(
        self,
        settings: BPRRecommender,
        network: EmbeddingNetwork,
        interactions: Interactions,
        forbidden: sparse.csr_array,
        seed: SeedSequence,
    ) -> None:
        self.settings, self.network = settings, network
        self.device = network.free.device
        self.graph = network.on(interactions.matrix, self.device)
        self.sampler = NegativeSampler(forbidden)
        rows = interactions.rows
        users, items = rows.row_numbers.astype(np.int64), rows.indices.astype(np.int64)
        teaches = self.sampler.pool_sizes[users] > 0  # who has everything prefers nothing
        self.users, self.items = users[teaches], items[teaches]
        self.rng = np.random.default_rng(child(seed, 0))
        dropout_seed = int(child(seed, 1).generate_state(1)[0])
        self.draws = torch.Generator(self.device).manual_seed(dropout_seed)
        self.descent = Descent(network.parameters(), settings.learning_rate)

    def epoch(self) -> None:
        order = self.rng.permutation(len(self.users))
        users = self.users[order]
        triples = np.stack([users, self.items[order], self.sampler.draw(users, self.rng)])
        on_device, size = torch.from_numpy(triples).to(self.device), self.settings.batch_size
        for start in range(0, len(users), size):
            self.descent.step(partial(self.loss, *on_device[:, start : start + size]))

    def loss(self, user: Tensor, liked: Tensor, other: Tensor) -> Tensor:
        embeddings = self.network(self.graph, self.draws)
        (u, i, j) = _looked_up(embeddings, user, liked, other)
        loss = functional.softplus(-(u * (i - j)).sum(dim=1)).mean()
        if self.settings.regularisation:
            penalised = self.network.penalised(embeddings)
            squares = sum(one.square().sum() for one in _looked_up(penalised, user, liked, other))
            loss = loss + self.settings.regularisation / 2 * squares / len(user)
        return loss


class _Watch:
    """The best weights by validation recall."""

    def __init__(
        self, network: EmbeddingNetwork, train: Interactions, validation: Interactions, graph: Any
    ) -> None:
        self.network, self.train, self.validation, self.graph = network, train, validation, graph
        self.best_recall, self.best_epoch, self.best = -1.0, 0, network.state_dict()

    @torch.no_grad()
    def look(self, epoch: int) -> None:
        users, items = (one.cpu().numpy() for one in self.network(self.graph))
        k = min(20, self.train.n_items)
        found = ranking.per_user(lambda some: users[some] @ items.T, self.train, self.validation, k=[k])
        recall = float(found[f"recall@{k}"].mean())
        if recall > self.best_recall:
            self.best_recall, self.best_epoch = recall, epoch
            self.best = {name: one.clone() for name, one in self.network.state_dict().items()}


def _looked_up(embeddings: Embeddings, user: Tensor, liked: Tensor, other: Tensor) -> tuple[Tensor, ...]:
    users, items = embeddings
    return (
        functional.embedding(user, users),
        functional.embedding(liked, items),
        functional.embedding(other, items),
    )


@torch.no_grad()
def _embedded(
    network: EmbeddingNetwork, matrix: sparse.csr_array, device: torch.device
) -> tuple[NDArray[Any], NDArray[Any]]:
    users, items = network(network.on(matrix, device))
    found = users.cpu().numpy().copy(), items.cpu().numpy().copy()
    if not all(np.isfinite(one).all() for one in found):
        raise InputError("learning_rate must be smaller: training ended in numbers that are not finite.")
    return found
