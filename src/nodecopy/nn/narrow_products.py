"""Products of sparse matrices with dense ones of few columns on a GPU.

cuSPARSE gives every row of the result to as many lanes as a warp has, of which three work for three classes.
Here lanes share the columns, the entries of a row, and rows.
"""

from __future__ import annotations

from contextlib import nullcontext

import torch
import triton
import triton.language as tl
from torch import Tensor

from nodecopy.nn.stack import MAX_ENTRIES

TILE = 1024
"""Numbers of the dense matrix that a program reads at once: rows times entries times columns."""
N_WARPS = 2
"""Warps of a program; four are slower on all matrices that were measured."""


@triton.jit
def _multiply_rows(  # type: ignore[no-untyped-def]
    starts,
    columns,
    values,
    dense,
    out,
    n_rows,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    ENTRIES: tl.constexpr,
    LANES: tl.constexpr,
):
    """Compute some rows of the result; Triton takes annotations of arguments for constants."""
    row, lane = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, LANES)
    is_row, is_column = row < n_rows, lane < WIDTH
    first = tl.load(starts + row, mask=is_row, other=0).to(tl.int64)  # beyond the last entry, 32 bits are few
    last = tl.load(starts + row + 1, mask=is_row, other=0).to(tl.int64)
    total = tl.zeros((ROWS, LANES), tl.float32)
    for step in range(0, tl.max(last - first), ENTRIES):
        entry = first[:, None] + step + tl.arange(0, ENTRIES)[None, :]
        is_entry = entry < last[:, None]
        column = tl.load(columns + entry, mask=is_entry, other=0).to(tl.int64)
        value = tl.load(values + entry, mask=is_entry, other=0.0)
        place = column[:, :, None] * WIDTH + lane[None, None, :]
        read = tl.load(dense + place, mask=is_entry[:, :, None] & is_column[None, None, :], other=0.0)
        total += tl.sum(value[:, :, None] * read, axis=1)
    place = row.to(tl.int64)[:, None] * WIDTH + lane[None, :]
    tl.store(out + place, total, mask=is_row[:, None] & is_column[None, :])


def multiply_narrow(matrix: Tensor, dense: Tensor) -> Tensor:
    """Return the product of a CSR tensor in single precision with a contiguous matrix of few columns."""
    (n_rows, width), n_entries = (matrix.shape[0], dense.shape[1]), matrix.values().numel()
    if not n_entries:
        return dense.new_zeros(n_rows, width)
    out, lanes = dense.new_empty(n_rows, width), triton.next_power_of_2(width)
    entries = min(MAX_ENTRIES, triton.next_power_of_2(triton.cdiv(n_entries, n_rows)))
    rows = max(1, TILE // (entries * lanes))
    # Triton takes the current device, not that of the tensors.
    with torch.cuda.device(dense.device) if dense.is_cuda else nullcontext():
        _multiply_rows[(triton.cdiv(n_rows, rows),)](
            matrix.crow_indices(),
            matrix.col_indices(),
            matrix.values(),
            dense,
            out,
            n_rows,
            WIDTH=width,
            ROWS=rows,
            ENTRIES=entries,
            LANES=lanes,
            num_warps=N_WARPS,
        )
    return out
