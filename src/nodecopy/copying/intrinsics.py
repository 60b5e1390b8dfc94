"""Two things numba lacks: prefetching, and merging sorted runs in vector registers.

Both are written as LLVM instructions that every target understands. The merge pays where the
processor can compress a vector under a mask (AVX-512); elsewhere :mod:`.kernels` merges one by one.

A *run* is up to 16 ascending numbers in an array of 17: the numbers, padded with the largest value
of the type, then the last number that was written out. Two runs are merged by the bitonic network
of Batcher (1968): reverse one, take the pairwise smaller and larger, and sort both halves by four
rounds of exchanges at distances 8, 4, 2 and 1.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16
HAS_VECTOR_MERGE = bool(binding.get_host_cpu_features().get("avx512f", False))

INT1, INT32, INT64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)
BYTES = ir.IntType(8).as_pointer()


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


def _declared(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)


def _shuffled(builder: Any, first: Any, second: Any, order: list[int]) -> Any:
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(INT32, LANES), order))


def _everywhere(builder: Any, value: Any) -> Any:
    empty = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
    return _shuffled(builder, builder.insert_element(empty, value, INT32(0)), empty, [0] * LANES)


def _largest(element: Any) -> Any:
    return ir.Constant(ir.VectorType(element, LANES), [2 ** (element.width - 1) - 1] * LANES)


def _exchanged(builder: Any, first: Any, second: Any) -> tuple[Any, Any]:
    """Lane by lane, the smaller and the larger."""
    less = builder.icmp_signed("<", first, second)
    return builder.select(less, first, second), builder.select(less, second, first)


def _sorted_bitonic(builder: Any, vector: Any) -> Any:
    for distance in (8, 4, 2, 1):
        partner = _shuffled(builder, vector, vector, [lane ^ distance for lane in range(LANES)])
        smaller, larger = _exchanged(builder, vector, partner)
        order = [lane + LANES if lane & distance else lane for lane in range(LANES)]
        vector = _shuffled(builder, smaller, larger, order)
    return vector


def _loaded(builder: Any, address: Any, count: Any, element: Any) -> Any:
    """The next ``count`` numbers, at most 16, padded with the largest value; nothing beyond is read."""
    vector, mask_type = ir.VectorType(element, LANES), ir.VectorType(INT1, LANES)
    lanes = ir.Constant(ir.VectorType(INT64, LANES), list(range(LANES)))
    mask = builder.icmp_signed("<", lanes, _everywhere(builder, count))
    name = f"llvm.masked.load.v{LANES}i{element.width}.p0"
    load = _declared(builder, name, vector, [BYTES, INT32, mask_type, vector])
    alignment = INT32(element.width // 8)
    return builder.call(load, [builder.bitcast(address, BYTES), alignment, mask, _largest(element)])


def _written(builder: Any, vector: Any, previous: Any, skip: Any, address: Any) -> Any:
    """Write the numbers that are neither repeated, nor ``skip``, nor padding; return how many."""
    element = vector.type.element
    before = _shuffled(builder, vector, _everywhere(builder, previous), [LANES, *range(LANES - 1)])
    keep = builder.icmp_signed("!=", vector, before)
    keep = builder.and_(keep, builder.icmp_signed("!=", vector, _everywhere(builder, skip)))
    keep = builder.and_(keep, builder.icmp_signed("!=", vector, _largest(element)))
    name = f"llvm.masked.compressstore.v{LANES}i{element.width}"
    store = _declared(builder, name, ir.VoidType(), [vector.type, BYTES, keep.type])
    builder.call(store, [vector, builder.bitcast(address, BYTES), keep])
    return builder.zext(builder.ctpop(builder.bitcast(keep, ir.IntType(LANES))), INT64)


def _run(context: Any, builder: Any, array_type: Any, array: Any, element: Any) -> tuple[Any, Any]:
    """Addresses of a run's 16 numbers and of the last number written."""
    numbers = _address(context, builder, array_type, array, INT64(0))
    last = _address(context, builder, array_type, array, INT64(LANES))
    return builder.bitcast(numbers, ir.VectorType(element, LANES).as_pointer()), last


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask the processor to bring ``array[index]`` near; harmless for any index."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], args[0], args[1])
        call = _declared(builder, "llvm.prefetch.p0", ir.VoidType(), [BYTES, INT32, INT32, INT32])
        builder.call(call, [builder.bitcast(address, BYTES), INT32(0), INT32(3), INT32(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@intrinsic
def start_run(typing_context: Any, run: Any, source: Any, start: Any, count: Any) -> Any:
    """Fill ``run`` with the first numbers, at most 16, of ``source[start:start + count]``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = context.get_data_type(signature.args[1].dtype)
        address = _address(context, builder, signature.args[1], args[1], args[2])
        numbers, _ = _run(context, builder, signature.args[0], args[0], element)
        builder.store(_loaded(builder, address, args[3], element), numbers, align=element.width // 8)
        return context.get_dummy_value()

    return types.void(run, source, types.intp, types.intp), codegen


@intrinsic
def merge_run(
    typing_context: Any, run: Any, source: Any, start: Any, count: Any, out: Any, position: Any, skip: Any
) -> Any:
    """Merge the next numbers, at most 16, of ``source[start:start + count]`` into ``run``.

    The 16 smallest go to ``out`` from ``position`` on, without repetitions and without ``skip``; the
    others stay in ``run``. Returns the next free position.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = context.get_data_type(signature.args[1].dtype)
        numbers, last = _run(context, builder, signature.args[0], args[0], element)
        address = _address(context, builder, signature.args[1], args[1], args[2])
        block = _loaded(builder, address, args[3], element)
        block = _shuffled(builder, block, block, list(range(LANES))[::-1])
        smaller, larger = _exchanged(builder, builder.load(numbers, align=element.width // 8), block)
        smaller, larger = _sorted_bitonic(builder, smaller), _sorted_bitonic(builder, larger)
        target = _address(context, builder, signature.args[4], args[4], args[5])
        n_written = _written(builder, smaller, builder.load(last), args[6], target)
        builder.store(larger, numbers, align=element.width // 8)
        builder.store(builder.extract_element(smaller, INT32(LANES - 1)), last)
        return builder.add(args[5], n_written)

    return types.intp(run, source, types.intp, types.intp, out, types.intp, source.dtype), codegen


@intrinsic
def finish_run(typing_context: Any, run: Any, out: Any, position: Any, skip: Any) -> Any:
    """Write what is left in ``run``; returns the next free position."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = context.get_data_type(signature.args[0].dtype)
        numbers, last = _run(context, builder, signature.args[0], args[0], element)
        vector = builder.load(numbers, align=element.width // 8)
        target = _address(context, builder, signature.args[1], args[1], args[2])
        return builder.add(args[2], _written(builder, vector, builder.load(last), args[3], target))

    return types.intp(run, out, types.intp, run.dtype), codegen
