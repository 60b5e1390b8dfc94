"""One training engine for many models at once; torch appears here first.

B models that differ in graph, split and seed are trained together: :mod:`.stack` holds their sparse matrices
(:mod:`.lowrank` those of a truncated SVD), :mod:`.features` their feature matrices, :mod:`.networks` their
weights, :mod:`.masks` their dropout masks, :mod:`.training` the loop and :mod:`.adam` its step, which
:mod:`.cuda_graph` records on a GPU. :mod:`.filters` and :mod:`.attention` are the parts of DFNet.
"""
