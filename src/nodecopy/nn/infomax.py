"""Deep Graph Infomax (Velickovic et al., 2019): node embeddings that are trained without labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn import functional

from nodecopy.nn.networks import draw_glorot
from nodecopy.nn.stack import SparseStack
from nodecopy.nn.training import choose_threads

SLOPE = 0.25
"""Initial slope of the PReLU below zero."""


class Infomax:
    """A layer of graph convolution trained to separate its outputs from those of a corrupted graph.

    The corrupted graph has the rows of the features permuted. Outputs h of either graph are scored by h M s,
    where s is the sigmoid of the mean output of the observed graph.
    """

    def __init__(
        self,
        features: sparse.csr_array,
        matrix: sparse.csr_array,
        n_hidden: int,
        rng: Generator,
        device: torch.device,
    ) -> None:
        self.features, self.matrix = SparseStack([features], device), SparseStack([matrix], device)
        self.parameters: Sequence[Tensor] = [
            draw_glorot([rng], features.shape[1], n_hidden, device),
            torch.zeros(n_hidden, device=device),
            torch.full((1,), SLOPE, device=device),
            draw_glorot([rng], n_hidden, n_hidden, device),
        ]
        for parameter in self.parameters:
            parameter.requires_grad_()

    def embed(self, *permutations: Tensor) -> list[Tensor]:
        """Return the outputs of the nodes, and those with the rows of the features permuted."""
        weight, bias, slope, _ = self.parameters
        projected = self.features @ weight
        inputs = [projected, *(projected[:, permutation] for permutation in permutations)]
        return [prelu((self.matrix @ rows)[0] + bias, slope) for rows in inputs]

    def loss(self, permutation: Tensor) -> Tensor:
        """Return the mean cross-entropy of the question whether an output is of the observed graph."""
        outputs, corrupted = self.embed(permutation)
        direction = self.parameters[3][0] @ outputs.mean(dim=0).sigmoid()
        of_observed = functional.softplus(-(outputs @ direction))
        of_corrupted = functional.softplus(corrupted @ direction)
        return (of_observed.mean() + of_corrupted.mean()) / 2


def prelu(inputs: Tensor, slope: Tensor) -> Tensor:
    """Return the PReLU with one slope; on a CPU the backward pass of torch takes several times as long."""
    if inputs.device.type != "cpu":
        return functional.prelu(inputs, slope)
    out: Tensor = _PReLU.apply(inputs, slope)  # type: ignore[no-untyped-call]
    return out


class _PReLU(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, inputs: Tensor, slope: Tensor) -> Tensor:
        context.save_for_backward(inputs, slope)
        return functional.leaky_relu(inputs, slope.item())

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        inputs, slope = context.saved_tensors
        of_inputs = torch.ops.aten.leaky_relu_backward(gradient, inputs, slope.item(), False)
        of_slope = torch.dot(gradient.flatten(), (inputs - inputs.relu()).flatten())
        return of_inputs, of_slope.view_as(slope)


def train_infomax(
    features: sparse.csr_array,
    matrix: sparse.csr_array,
    *,
    n_hidden: int,
    learning_rate: float,
    n_epochs: int,
    patience: int,
    rng: Generator,
    device: torch.device,
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], int]:
    """Return the layer of the epoch with the lowest loss, and the number of epochs that were trained.

    The layer is its weights, its bias and the slope of its PReLU.

    ``matrix`` is the propagation matrix. Training stops after ``patience`` epochs without a lower loss.
    """
    with choose_threads(features.shape[0] * n_hidden, device):
        model = Infomax(features, matrix, n_hidden, rng, device)
        optimiser = torch.optim.Adam(model.parameters, lr=learning_rate)
        lowest, best_epoch, epoch = np.inf, 0, 0
        best = [parameter.detach().clone() for parameter in model.parameters]
        for epoch in range(1, n_epochs + 1):
            loss = model.loss(torch.from_numpy(rng.permutation(features.shape[0])).to(device))
            value = loss.item()
            if value < lowest:
                lowest, best_epoch = value, epoch
                best = [parameter.detach().clone() for parameter in model.parameters]
            elif epoch - best_epoch >= patience:
                break
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    weights, bias, slope = (parameter.cpu().numpy() for parameter in best[:3])
    return weights[0], bias, slope, epoch
