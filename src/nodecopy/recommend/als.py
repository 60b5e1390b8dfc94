"""Weighted matrix factorisation by alternating least squares (Hu, Koren and Volinsky, 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import sparse

from nodecopy._core.checks import check_real, check_settings
from nodecopy._core.imports import import_optional
from nodecopy._core.linalg import one_blas_thread
from nodecopy._core.parallel import track
from nodecopy.interactions import Interactions
from nodecopy.recommend.algebra import import_torch_for, singular_matrix
from nodecopy.recommend.base import EmbeddingRecommender

MAX_BATCH_ENTRIES = 2**28  # of the factors, or of the matrices, of the rows that are solved at once


@dataclass(eq=False)
class IALS(EmbeddingRecommender):
    """Factorise the interactions: inner products are near 1 where there is an interaction, near 0 elsewhere.

    On the CPU the factors are fitted by the package ``implicit``, an extra, with three steps of conjugate
    gradients per solution; on another device by torch, with exact solutions.

    Parameters
    ----------
    n_factors
        Length of the embeddings.
    regularisation
        Weight of the squared embeddings in the loss.
    confidence
        Weight of an interaction in the loss; a pair without one has weight 1.
    n_iterations
        Number of alternations between users and items.
    device
        ``"cpu"``, or a device of torch such as ``"cuda"``.

    Attributes
    ----------
    user_embeddings_, item_embeddings_, regularisation_, confidence_
        Factors of users and items, and the parameters of the fit.

    Examples
    --------
    >>> from nodecopy import datasets
    >>> from nodecopy.recommend import IALS
    >>> IALS(8).fit(datasets.load("library"), rng=0).recommend(["reader 001"], 3)[0].shape
    (1, 3)
    """

    n_factors: int = 32
    regularisation: float = 10.0
    confidence: float = 10.0
    n_iterations: int = 15
    device: str = "cpu"

    def check_params(self) -> None:
        check_settings(self, n_factors=1, n_iterations=1, regularisation=0.0, confidence=1.0)
        if self.device != "cpu":
            import_torch_for(self.device)

    def fit_interactions(self, interactions: Interactions, validation: Any, seed: SeedSequence) -> None:
        if self.device == "cpu":
            self._fit_implicit(interactions, seed)
        else:
            self._fit_torch(interactions, seed)
        self.regularisation_, self.confidence_ = self.regularisation, self.confidence

    def set_state(self, state: dict[str, Any]) -> None:
        for name in ("regularisation", "confidence") if state else ():
            check_real(state[f"{name}_"], f"{name} of IALS", low=0.0)
        super().set_state(state)

    def _fit_implicit(self, interactions: Interactions, seed: SeedSequence) -> None:
        """Factorise the interactions on one thread, so that a seed gives one result."""
        als = import_optional("implicit.cpu.als", "IALS")
        with one_blas_thread():  # implicit warns of several threads in BLAS, which slow it down
            model = als.AlternatingLeastSquares(
                factors=self.n_factors,
                regularization=self.regularisation,
                alpha=self.confidence,
                iterations=self.n_iterations,
                dtype=np.float64,
                num_threads=1,
                random_state=int(seed.generate_state(1)[0]),
            )
            model.fit(sparse.csr_matrix(interactions.matrix, dtype=np.float64), show_progress=False)
        self.user_embeddings_ = np.asarray(model.user_factors, np.float32)
        self.item_embeddings_ = np.asarray(model.item_factors, np.float32)

    def _fit_torch(self, interactions: Interactions, seed: SeedSequence) -> None:
        torch: Any = import_torch_for(self.device)
        A = sparse.csr_array(interactions.matrix)
        A_t = sparse.csr_array(A.T)
        start = np.random.default_rng(seed).random((A.shape[1], self.n_factors), np.float32)
        items = torch.as_tensor(0.01 * start, device=self.device)
        for _ in track(range(self.n_iterations), "iteration"):
            users = self._solve_rows(torch, A, items)
            items = self._solve_rows(torch, A_t, users)
        self.user_embeddings_, self.item_embeddings_ = (part.cpu().numpy() for part in (users, items))

    def _solve_rows(self, torch: Any, matrix: sparse.csr_array, factors: Any) -> Any:
        """Return the ridge regressions of the rows of a matrix on the factors of its columns."""
        n_factors = factors.shape[1]
        gram = factors.T @ factors + self.regularisation * torch.eye(n_factors, device=self.device)
        padded = torch.cat([factors, torch.zeros_like(factors[:1])])
        solutions = torch.zeros((matrix.shape[0], n_factors), device=self.device)
        sizes = np.diff(matrix.indptr)
        order = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
        while len(order):
            width = int(sizes[order[0]])
            n_rows = max(1, MAX_BATCH_ENTRIES // (n_factors * max(width, n_factors)))
            rows, order = order[:n_rows], order[n_rows:]
            columns = np.full((len(rows), width), matrix.shape[1])  # the padding, a factor of zeros
            is_used = np.arange(width) < sizes[rows, None]
            columns[is_used] = matrix[rows].indices
            own = padded[torch.as_tensor(columns, device=self.device)]
            left = gram + (self.confidence - 1) * (own.transpose(1, 2) @ own)
            right = self.confidence * own.sum(1)[:, :, None]
            try:
                solution = torch.cholesky_solve(right, torch.linalg.cholesky(left))
            except torch.linalg.LinAlgError as error:
                raise singular_matrix(self.regularisation) from error
            solutions[torch.as_tensor(rows, device=self.device)] = solution[:, :, 0]
        return solutions

    def score_rows(self, rows: sparse.csr_array) -> NDArray[Any]:
        """Return scores by the ridge regression of each row on the item factors."""
        Y = self.item_embeddings_.astype(np.float64)
        gram = Y.T @ Y + self.regularisation_ * np.eye(Y.shape[1])
        factors = np.zeros((rows.shape[0], Y.shape[1]))
        for number in range(rows.shape[0]):
            own = Y[rows.indices[rows.indptr[number] : rows.indptr[number + 1]]]
            left = gram + (self.confidence_ - 1) * own.T @ own
            factors[number] = np.linalg.solve(left, self.confidence_ * own.sum(axis=0))
        return np.asarray(factors @ Y.T)
