"""The training engine for many networks at once, see :mod:`.engine`; torch appears here first.

On a CPU most networks are computed one by one in compiled code, :mod:`.compiled` and :mod:`.kernels`.
"""
