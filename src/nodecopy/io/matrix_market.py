"""Matrix Market files; their text is checked first, since SciPy's compiled reader does not survive damage."""

from __future__ import annotations

import math
from pathlib import Path

from scipy import sparse
from scipy.io import mmread

from nodecopy._core.file_limits import check_shape
from nodecopy._core.sparse_matrices import as_csr
from nodecopy.errors import InputError

NUMBERS = b"0123456789eE+-. \t\r\n"


def read_matrix_market(path: Path) -> sparse.csr_array:
    """Return the matrix of a ``.mtx`` file."""
    _check_text(path)
    entries = sparse.coo_array(mmread(path))
    check_shape(entries.shape, entries.nnz)
    return as_csr(entries, "the matrix of the file")


def _check_text(path: Path) -> None:
    """Raise an error unless the file holds numbers, with a line for every entry."""
    first, _, content = path.read_bytes().partition(b"\n")
    while content.lstrip().startswith(b"%"):
        content = content.partition(b"\n")[2]
    line, _, body = content.lstrip().partition(b"\n")
    sizes = list(map(int, line.split()))
    if b"coordinate" not in first.lower():  # a dense matrix
        if math.prod(sizes) > 2 * len(body) + sizes[0]:  # of a symmetric one, half
            raise InputError(f"the file must have an entry for each place; there are {math.prod(sizes)}.")
        return
    n_entries = sizes[2]
    if strange := (line + body).translate(None, NUMBERS):
        raise InputError(f"a Matrix Market file must hold numbers; got {strange[:20]!r}.")
    n_lines = body.strip().count(b"\n") + bool(body.strip())
    if n_lines != n_entries and sum(bool(line.strip()) for line in body.splitlines()) != n_entries:
        raise InputError(f"the file must have {n_entries} lines of entries; it has {n_lines}.")
