"""The training engine for many networks at once; torch appears here first.

:mod:`.engine` trains networks that differ in graph, labelled nodes and seed, and averages their predictions.
:mod:`.networks` holds their weights, matrices and dropout masks, and :mod:`.training` the loop. On a CPU
most networks are computed one by one in compiled code, :mod:`.compiled` and :mod:`.kernels`.
:mod:`.filters` are the networks of DFNet, :mod:`.modules` evaluates and trains modules of users, and
:mod:`.pyg` is the transform for PyTorch Geometric.
"""
