"""Random inputs: small sparse graphs and interactions with every kind of id, label, weight and feature."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from nodecopy import Graph, Interactions

WEIGHTS = st.floats(min_value=2.0**-10, max_value=2.0**10)
WORDS = st.text("abcxyzAZ_é-0", min_size=1, max_size=4).map(lambda text: f"n{text}")
TEXTS = st.text("ab ,;\"'\t\n\ré7", min_size=1, max_size=4).map(lambda text: f"n{text}")
INTEGERS = st.integers(-(2**63), 2**63 - 1)


@st.composite
def ids(draw: st.DrawFn, size: int, texts: st.SearchStrategy[str] = WORDS) -> NDArray[Any] | None:
    """No ids, or unique integers or strings in any order."""
    values = draw(st.sampled_from([None, INTEGERS, texts]))
    if values is None or size == 0:
        return None
    return np.array(draw(st.lists(values, min_size=size, max_size=size, unique=True)))


@st.composite
def matrices(draw: st.DrawFn, shape: tuple[int, int], weighted: bool | None = None) -> sparse.csr_array:
    """Sparse matrices of ones or of positive weights."""
    weighted = draw(st.booleans()) if weighted is None else weighted
    cells = st.tuples(st.integers(0, max(0, shape[0] - 1)), st.integers(0, max(0, shape[1] - 1)))
    chosen = draw(st.lists(cells, unique=True, max_size=3 * max(shape))) if min(shape) else []
    values = draw(st.lists(WEIGHTS, min_size=len(chosen), max_size=len(chosen))) if weighted else []
    data = np.array(values) if weighted else np.ones(len(chosen))
    places = np.array(chosen, int).reshape(-1, 2)
    return sparse.csr_array((data, (places[:, 0], places[:, 1])), shape=shape)


@st.composite
def labels(draw: st.DrawFn, size: int) -> list[int] | list[str]:
    """Integers or strings, unknown for some."""
    values: Any = draw(st.sampled_from([st.integers(-1, 3), st.sampled_from(["", "cat", "dog", "é"])]))
    result: list[Any] = draw(st.lists(values, min_size=size, max_size=size))
    return result


@st.composite
def features(draw: st.DrawFn, size: int) -> NDArray[Any] | sparse.csr_array | None:
    """No features, or a dense or sparse matrix."""
    width = draw(st.integers(0, 3))
    kind = draw(st.sampled_from(["none", "dense", "sparse"]))
    matrix = draw(matrices((size, width), weighted=True))
    return {"none": None, "dense": matrix.toarray(), "sparse": matrix}[kind]


@st.composite
def graphs(
    draw: st.DrawFn,
    *,
    directed: bool | None = None,
    weighted: bool | None = None,
    labelled: bool | None = None,
    max_nodes: int = 8,
    texts: st.SearchStrategy[str] = WORDS,
) -> Graph:
    """Random graphs; ``None`` leaves a property to chance."""
    n = draw(st.integers(0, max_nodes))
    labelled = draw(st.booleans()) if labelled is None else labelled
    return Graph(
        draw(matrices((n, n), weighted)),
        draw(features(n)),
        draw(labels(n)) if labelled else None,
        draw(ids(n, texts)),
        draw(st.booleans()) if directed is None else directed,
    )


@st.composite
def interactions(draw: st.DrawFn, *, weighted: bool | None = None, max_size: int = 8) -> Interactions:
    """Random users x items."""
    shape = draw(st.integers(0, max_size)), draw(st.integers(0, max_size))
    return Interactions(draw(matrices(shape, weighted)), draw(ids(shape[0])), draw(ids(shape[1])))
