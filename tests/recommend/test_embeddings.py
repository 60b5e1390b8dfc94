from __future__ import annotations

import numpy as np

from nodecopy.recommend.base import cosines


def test_cosines_of_some_embeddings_with_all() -> None:
    embeddings = np.array([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0], [-3.0, -4.0]], np.float32)
    expected = [[0.8, 1.0, 0.0, -0.8], [0.0, 0.0, 0.0, 0.0]]
    np.testing.assert_allclose(cosines(embeddings, np.array([1, 2])), expected, atol=1e-6)
