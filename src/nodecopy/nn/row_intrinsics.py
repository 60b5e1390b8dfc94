"""Sums of rows of a matrix in vector registers, as LLVM instructions.

Numba keeps an accumulator in memory, since it may overlap with what is added to it. The product of a sparse
matrix and 16 dense columns takes 3 times as long without these instructions, that of its transpose 6 times.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16
"""Numbers that are added together."""
VECTOR, INDEX = ir.VectorType(ir.FloatType(), LANES), ir.IntType(64)
ALIGNMENT = 4
"""Bytes; rows of a matrix begin anywhere."""


@intrinsic
def gather_rows(
    typing_context: Any,
    out: Any,
    row: Any,
    column: Any,
    indices: Any,
    values: Any,
    start: Any,
    stop: Any,
    dense: Any,
) -> Any:
    """Write the sum of ``values[e] * dense[indices[e]]`` over all e from start to stop to a row of ``out``.

    All matrices have single precision; of their rows only the :data:`LANES` entries from a column on count.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows = _Rows(context, builder, signature, args)
        total = cgutils.alloca_once_value(builder, ir.Constant(VECTOR, None))
        with rows.entries(3, 4, args[5], args[6]) as (index, value):
            row = builder.load(rows.pointer(7, index, args[2]), align=ALIGNMENT)
            builder.store(_add_product(builder, builder.load(total), value, row), total)
        builder.store(builder.load(total), rows.pointer(0, args[1], args[2]), align=ALIGNMENT)
        return context.get_dummy_value()

    integer = types.intp
    return types.void(out, integer, integer, indices, values, integer, integer, dense), codegen


@intrinsic
def scatter_row(
    typing_context: Any,
    out: Any,
    indices: Any,
    values: Any,
    start: Any,
    stop: Any,
    dense: Any,
    row: Any,
    column: Any,
) -> Any:
    """Add ``values[e] * dense[row]`` to ``out[indices[e]]`` for all e from start to stop.

    All matrices have single precision; of their rows only the :data:`LANES` entries from a column on count.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows = _Rows(context, builder, signature, args)
        row = builder.load(rows.pointer(5, args[6], args[7]), align=ALIGNMENT)
        with rows.entries(1, 2, args[3], args[4]) as (index, value):
            into = rows.pointer(0, index, args[7])
            total = builder.load(into, align=ALIGNMENT)
            builder.store(_add_product(builder, total, value, row), into, align=ALIGNMENT)
        return context.get_dummy_value()

    integer = types.intp
    return types.void(out, indices, values, integer, integer, dense, integer, integer), codegen


class _Rows:
    """The arrays among the arguments of an intrinsic."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.context, self.builder, self.types, self.args = context, builder, signature.args, args

    def array(self, number: int) -> Any:
        return self.context.make_array(self.types[number])(self.context, self.builder, self.args[number])

    def pointer(self, number: int, row: Any, column: Any) -> Any:
        """Return where a row of a matrix begins at a column, as the address of a vector."""
        matrix = self.array(number)
        width = cgutils.unpack_tuple(self.builder, matrix.shape)[1]
        place = self.builder.add(self.builder.mul(row, width), column)
        return self.builder.bitcast(self.builder.gep(matrix.data, [place]), VECTOR.as_pointer())

    @contextmanager
    def entries(self, indices: int, values: int, start: Any, stop: Any) -> Iterator[tuple[Any, Any]]:
        """Loop over entries; yields the index of an entry and its value in all lanes."""
        builder, sources = self.builder, [self.array(indices).data, self.array(values).data]
        with cgutils.for_range_slice(builder, start, stop, INDEX(1), INDEX) as (entry, _):
            index, value = (builder.load(builder.gep(source, [entry])) for source in sources)
            undefined = ir.Constant(VECTOR, ir.Undefined)
            first = builder.insert_element(undefined, value, INDEX(0))
            lanes = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            yield builder.sext(index, INDEX), builder.shuffle_vector(first, undefined, lanes)


def _add_product(builder: Any, total: Any, value: Any, row: Any) -> Any:
    """Return ``total + value * row``, rounded once where the processor can."""
    product = builder.fmul(value, row, flags=("contract",))
    return builder.fadd(total, product, flags=("contract",))
