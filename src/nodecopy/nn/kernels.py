"""Compiled parts of an epoch on a CPU: dropout masks, sparse products, activations, losses and Adam.

The masks are those of :class:`~nodecopy.nn.networks.Masks`, bit for bit; everything else is what torch
computes, up to rounding. The kernels are small and called from Python, because a kernel that contains all
others takes 20 s to compile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types, uint8, uint32
from numba.core import cgutils
from numba.extending import intrinsic

from nodecopy._core.kernels import njit
from nodecopy.nn.networks import GOLDEN, MIX_1, MIX_2

LANES = 16  # numbers that are added together
VECTOR, INDEX = ir.VectorType(ir.FloatType(), LANES), ir.IntType(64)
ALIGNMENT = 4  # bytes; rows of a matrix begin anywhere


@intrinsic
def gather_rows(typing_context, out, row, column, indices, values, start, stop, dense):
    """Write the sum of ``values[e] * dense[indices[e]]`` over e from start to stop to a row of ``out``."""

    def codegen(context, builder, signature, args):
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
def scatter_row(typing_context, out, indices, values, start, stop, dense, row, column):
    """Add ``values[e] * dense[row]`` to ``out[indices[e]]`` for all e from start to stop."""

    def codegen(context, builder, signature, args):
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


compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8  # of Adam, as torch has them
ZERO, ONE = np.float32(0), np.float32(1)


@compiled
def multiply(starts, stops, columns, values, dense, out):
    """Write the product of a sparse and a dense matrix."""
    width = dense.shape[1]
    for i in range(len(starts)):
        start, stop = starts[i], stops[i]
        for column in range(0, width - LANES + 1, LANES):
            gather_rows(out, i, column, columns, values, start, stop, dense)
        for column in range(width - width % LANES, width):
            total = ZERO
            for entry in range(start, stop):
                total += values[entry] * dense[columns[entry], column]
            out[i, column] = total


@compiled
def multiply_transpose(starts, stops, columns, values, dense, out):
    """Write the product of the transpose of a sparse matrix and a dense matrix, as :func:`multiply` does."""
    out[:] = ZERO
    width = dense.shape[1]
    for i in range(len(starts)):
        start, stop = starts[i], stops[i]
        for column in range(0, width - LANES + 1, LANES):
            scatter_row(out, columns, values, start, stop, dense, i, column)
        for column in range(width - width % LANES, width):
            for entry in range(start, stop):
                out[columns[entry], column] += values[entry] * dense[i, column]


@njit(inline="always")
def _mix(x):
    x = uint32(x ^ (x >> uint32(16)))
    x = uint32(x * uint32(MIX_1))
    x = uint32(x ^ (x >> uint32(15)))
    x = uint32(x * uint32(MIX_2))
    return uint32(x ^ (x >> uint32(15)))


@compiled
def draw_words(key, step, place, words):
    """Write the random words of a model, a step and a place."""
    by_step, by_place = uint32(GOLDEN * (2 * step + 1)), uint32(MIX_2 * (place + 1))
    mixed = _mix(uint32(uint32(uint32(key) + by_step) ^ by_place))
    for i in range(len(words)):
        words[i] = _mix(uint32(uint32(i) ^ mixed))


@compiled
def mask_values(values, numbers, threshold, out):
    """Write values after dropout of those whose random byte is below a threshold."""
    scale = np.float32(256) / np.float32(256 - threshold)
    for i in range(len(values)):
        out[i] = values[i] * (scale if numbers[i] >= threshold else ZERO)


@compiled
def activate(hidden, nodes, numbers, threshold, slope, bias, gates):
    """Turn sums over neighbours into hidden units after dropout."""
    n_rows, width = hidden.shape
    scale, threshold = np.float32(256) / np.float32(256 - threshold), uint8(threshold)
    for row in range(n_rows):
        units, factors = hidden[row], gates[row]
        of_node = numbers[nodes[row] * width : (nodes[row] + 1) * width]
        for k in range(width):  # a loop of its own becomes vector code
            factors[k] = scale if of_node[k] >= threshold else ZERO
        for k in range(width):
            x = units[k] + bias[k]
            factors[k] *= ONE if x > ZERO else slope
            units[k] = x * factors[k]


@compiled
def shift_logits(logits, n_classes):
    """Subtract the largest logit of each row; columns from ``n_classes`` on are padding."""
    for row in range(len(logits)):
        highest = logits[row, 0]
        for k in range(1, n_classes):
            highest = max(highest, logits[row, k])
        for k in range(n_classes):
            logits[row, k] -= highest


@compiled
def differentiate(exponentials, targets, weights):
    """Replace exponentials of logits by the gradient of the weighted cross-entropy."""
    n_rows, n_classes = targets.shape
    for row in range(n_rows):
        total, mass = ZERO, ZERO
        for k in range(n_classes):
            total += exponentials[row, k]
            mass += targets[row, k]
        for k in range(n_classes):
            share = exponentials[row, k] / total
            exponentials[row, k] = weights[row] * (share * mass - targets[row, k])


@compiled
def step_adam(weight, gradient, mean, square, learning_rate, decay, number):
    """Change weights by the step of Adam with a number, counted from 1."""
    size = np.float32(learning_rate / (1.0 - BETA_1**number))
    correction = np.float32(np.sqrt(1.0 - BETA_2**number))
    beta_2, epsilon = np.float32(BETA_2), np.float32(EPSILON)
    share_1, share_2 = np.float32(1.0 - BETA_1), np.float32(1.0 - BETA_2)
    for i in range(len(weight)):
        slope = gradient[i] + decay * weight[i]
        mean[i] += share_1 * (slope - mean[i])
        square[i] = beta_2 * square[i] + share_2 * slope * slope
        weight[i] -= size * mean[i] / (np.sqrt(square[i]) / correction + epsilon)
