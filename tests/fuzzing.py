"""Damaged files for every reader: ``python -m tests.fuzzing FIRST LAST`` reads the inputs of these numbers.

An input is a valid file with a mutation, which its number determines. Allowed are a result that passes the
checks here, and an error of the package; anything else is printed, and the exit status is 1. The process has
limits on memory and on the time of an input, and ends by a signal if compiled code crashes.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import signal
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from nodecopy import Graph, Interactions
from nodecopy._core.arrays import check_rows
from nodecopy.classify import Classifier, LabelPropagation
from nodecopy.defend import Defence, EvidenceDefence
from nodecopy.errors import InputError, NotFittedError
from nodecopy.io import FeatureEncoder
from nodecopy.models import GraphModel
from nodecopy.recommend import Recommender
from tests.checked_kernels import force_checked_kernels
from tests.fuzz_corpus import build_corpus, build_graph

MEMORY, SECONDS = 6 * 2**30, 20  # limits on the address space of the process and on the time of an input
MAX_GROWTH = 2**30  # how many bytes of memory the inputs may add to those of the process
GRAPH = build_graph()
VALUES: list[Any] = [None, True, -1, 0.5, "x", [], {}, {"list": [1, "x"]}, {"dict": {"x": 1}}, {"array": "x"}]
"""What takes the place of a value of JSON."""
NUMBERS = ["-1", "0", "1e400", "nan", "9" * 30, str(2**63), str(2**31), "-0.5", "", "true", '"', "\0"]


def mutate(content: bytes, other: bytes, name: str, rng: np.random.Generator) -> bytes:
    """Return a damaged copy of a file."""
    kind = rng.integers(6)
    data = bytearray(content)
    if name.endswith("npz") and kind >= 2:
        return mutate_arrays(content, rng)
    if kind == 0:
        return content[: rng.integers(len(content))]
    if kind == 1:
        return content[: rng.integers(len(content))] + other[rng.integers(len(other)) :]
    if kind in (2, 3) and not name.endswith(("npz", "parquet")):
        numbers = list(re.finditer(rb"-?\d+(\.\d+)?", content))
        chosen = numbers[rng.integers(len(numbers))]
        return content[: chosen.start()] + str(rng.choice(NUMBERS)).encode() + content[chosen.end() :]
    if kind == 4 and name.endswith("json"):
        return mutate_json(content.decode(), rng).encode()
    for position in rng.integers(0, len(data), rng.integers(1, 9)):
        data[position] ^= 1 << int(rng.integers(8))
    return bytes(data)


def mutate_arrays(content: bytes, rng: np.random.Generator) -> bytes:
    """Return an archive with a damaged array, or with two arrays swapped."""
    with np.load(io.BytesIO(content)) as archive:
        arrays = dict(archive)
    first, second = rng.choice(list(arrays), 2)
    if rng.random() < 0.2:
        arrays[first], arrays[second] = arrays[second], arrays[first]
    elif first == "tree" and rng.random() < 0.5:
        arrays[first] = np.array(mutate_json(str(arrays[first]), rng))
    elif first == "tree":
        numbers = list(re.finditer(r"-?\d+(\.\d+)?", text := str(arrays[first])))
        chosen = numbers[rng.integers(len(numbers))]
        arrays[first] = np.array(text[: chosen.start()] + rng.choice(NUMBERS) + text[chosen.end() :])
    else:
        arrays[first] = _mutate_array(arrays[first], rng)
    damaged = io.BytesIO()
    np.savez(damaged, **arrays)
    return damaged.getvalue()


def mutate_json(text: str, rng: np.random.Generator) -> str:
    """Return JSON in which a value has another type, is missing, or is that of another place."""
    tree = json.loads(text)
    places: list[tuple[Any, Any]] = []
    parts = [tree]
    for part in parts:
        keys = list(part) if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else []
        places += [(part, key) for key in keys]
        parts += [part[key] for key in keys]
    part, key = places[rng.integers(len(places))]
    kind = rng.integers(4)
    if kind == 0:
        del part[key]
    elif kind == 1:
        other, source = places[rng.integers(len(places))]
        part[key] = json.loads(json.dumps(other[source]))
    else:
        part[key] = VALUES[rng.integers(len(VALUES))]
    return json.dumps(tree)


def _mutate_array(array: Any, rng: np.random.Generator) -> Any:
    changed = np.array(array)
    kind = rng.integers(6)
    if kind == 0:
        return changed.ravel()[: rng.integers(changed.size + 1)]
    if kind == 1:
        return changed[None]
    if kind == 2:
        return np.concatenate([changed.ravel()] * 2)
    if kind == 3 or changed.dtype.kind not in "iuf" or not changed.size:
        dtype = np.dtype(rng.choice(["f4", "i1", ">i8", "U3", "c8"]))
        with np.errstate(all="ignore"):
            return np.zeros(changed.shape, dtype) if changed.dtype.kind in "US" else changed.astype(dtype)
    wrong = [-1, 0, 10**6, 2**31 - 1, -(2**31)] + [np.nan, np.inf, -1e308] * (changed.dtype.kind == "f")
    with np.errstate(all="ignore"):
        changed.flat[rng.integers(changed.size)] = np.array(rng.choice(wrong)).astype(changed.dtype)
        return changed if kind == 4 else changed * changed.dtype.type(rng.choice([-1, 3]))


def check(result: Any) -> None:
    """Raise an error unless what was read is a valid graph, table or model, which can be used."""
    if isinstance(result, Classifier):
        assert np.allclose(result.predict_proba().sum(axis=1), 1, atol=1e-3)
        if not isinstance(result, LabelPropagation):  # which predicts on the graph of fit alone
            assert np.isfinite(result.predict_proba(graph=GRAPH)).all()
    if isinstance(result, Defence):
        assert np.isfinite(result.undefended_proba(GRAPH)).all()
    if isinstance(result, EvidenceDefence):
        for report in result.explain([0, 3], graph=GRAPH):
            assert np.isfinite([*report.probabilities.values(), *report.features.values()]).all()
            assert all(0 <= edge.credibility <= 1 for edge in report.edges)
    if isinstance(result, FeatureEncoder):
        columns: Any = {"age": [1, None], "city": ["Rome", "Bonn"]}
        assert np.isfinite(result.transform(columns)).all()
    if isinstance(result, GraphModel):
        check_rows_of(result.sample(rng=0))
    if isinstance(result, Recommender):
        assert not np.isnan(result.recommend(k=2)[1]).any()
        check_rows_of(result.interactions_)
        if result.is_linear:
            log = result.interactions_
            assert np.isfinite(result.explain(log.user_ids[0], log.item_ids[0]).score)
    if isinstance(result, (Graph, Interactions)):
        check_rows_of(result)


def check_rows_of(data: Any) -> None:
    """Raise an error unless the rows of a graph or of interactions are valid."""
    rows = data.rows
    check_rows(rows.indptr, rows.indices, rows.n_rows, rows.n_columns, "the result")
    weights = rows.csr.data
    assert np.isfinite(weights).all()
    assert (weights > 0).all()
    if isinstance(data, Graph) and not data.directed:
        assert (rows.csr != rows.csr.T).nnz == 0


def fuzz(first: int, last: int) -> list[str]:
    """Return what went wrong with the inputs of these numbers."""
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["NODECOPY_CACHE"] = str(folder / "cache")
        corpus = build_corpus(folder)
        contents = [path.read_bytes() for path, _ in corpus]
        largest = peak_memory() + MAX_GROWTH
        for number in range(first, last):
            rng = np.random.default_rng(number)
            which, other = rng.integers(len(corpus), size=2)
            path, read = corpus[which]
            damaged = folder / f"damaged{''.join(path.suffixes)}"
            damaged.write_bytes(mutate(contents[which], contents[other], path.name, rng))
            signal.alarm(SECONDS)
            try:
                check(read(damaged))
            except (InputError, NotFittedError):  # an object without a state is one that is not fitted
                pass
            except Exception as error:
                wrong.append(f"input {number}, {path.name}: {type(error).__name__}: {error}")
            signal.alarm(0)
            if peak_memory() > largest:
                wrong.append(f"input {number}, {path.name}: {peak_memory() - largest + MAX_GROWTH} bytes")
                largest = peak_memory() + MAX_GROWTH
    return wrong


def peak_memory() -> int:
    """Return the largest number of bytes that the process has had in memory."""
    import resource  # not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 2**10)


def main() -> None:
    """Read the inputs that the command line names, with limits on memory and time."""
    import resource  # not on Windows

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    logging.disable()
    force_checked_kernels()
    wrong = fuzz(int(sys.argv[1]), int(sys.argv[2]))
    print("\n".join(wrong) or f"inputs {sys.argv[1]} to {sys.argv[2]}: nothing wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
