"""The loss of features in blocks against the dense formula."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse
from torch.nn.functional import binary_cross_entropy_with_logits

from nodecopy.generators.presence_loss import PresenceLoss


@pytest.mark.parametrize("logits_at_once", [1, 20, 37, None])
def test_value_and_gradients_are_the_dense_ones(logits_at_once: int | None) -> None:
    rng = np.random.default_rng(0)
    features = sparse.csr_array(rng.normal(size=(11, 9)) * (rng.random((11, 9)) < 0.3))
    features.data[0] = 0.0  # a stored zero is not a feature
    present = torch.from_numpy((features.toarray() != 0).astype(float))
    tensors = [torch.from_numpy(rng.normal(size=shape)) for shape in ((11, 4), (4, 9), (9,))]
    z, weight, bias = (tensor.clone().requires_grad_() for tensor in tensors)
    zeros = (present == 0).sum() / present.sum()
    dense = binary_cross_entropy_with_logits(z @ weight + bias, present, pos_weight=zeros)
    (3 * dense).backward()  # type: ignore[no-untyped-call]
    for with_value in (True, False):
        blocked = [tensor.clone().requires_grad_() for tensor in tensors]
        loss = PresenceLoss(features, torch.device("cpu"), logits_at_once)(*blocked, with_value=with_value)
        (3 * loss).backward()  # type: ignore[no-untyped-call]
        assert loss.item() == pytest.approx(dense.item() if with_value else 0)
        for actual, expected in zip(blocked, (z, weight, bias), strict=True):
            torch.testing.assert_close(actual.grad, expected.grad)
