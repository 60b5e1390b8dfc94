"""Compiled functions; without a cache on disk, each process compiles them, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_has_warned = False
Function = Callable[..., Any]


def njit(**options: Any) -> Callable[[Function], Function]:
    """Compile a function as ``numba.njit`` does; a cache that cannot be written or read is no error."""

    def compile_function(function: Function) -> Function:
        try:
            compiled: Any = numba.njit(**options)(function)
        except (RuntimeError, OSError) as error:
            _warn(error)
            return numba.njit(**options | {"cache": False})(function)  # type: ignore[no-any-return]
        for name in ("load_overload", "save_overload") if options.get("cache") else ():
            setattr(compiled._cache, name, _without_errors(getattr(compiled._cache, name)))
        return compiled  # type: ignore[no-any-return]

    return compile_function


def _without_errors(method: Function) -> Function:
    """Return a method of a cache that warns where it would raise an error, so that numba compiles."""

    def call(*args: Any, **options: Any) -> Any:
        try:
            return method(*args, **options)
        except Exception as error:  # damaged files raise nearly anything
            _warn(error)
            return None

    return call


def _warn(error: Exception) -> None:
    global _has_warned
    if not _has_warned:
        _has_warned = True
        problem = f"compiled code cannot be kept on disk ({error}); every process compiles it"
        warnings.warn(f"{problem}. Set NUMBA_CACHE_DIR to a writable folder.", stacklevel=4)


compiled = njit(cache=True, nogil=True)
INT32, POINTER = ir.IntType(32), ir.IntType(8).as_pointer()
READ, KEEP_IN_ALL_CACHES, DATA = INT32(0), INT32(3), INT32(1)


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Start loading ``array[index]`` into the cache; any index is allowed, also one outside the array."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), POINTER)
        kind = ir.FunctionType(ir.VoidType(), [POINTER, INT32, INT32, INT32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [address, READ, KEEP_IN_ALL_CACHES, DATA])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen
