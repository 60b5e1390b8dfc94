"""One training engine for many models at once; torch appears here first.

B models that differ in graph, split and seed are trained as one: :mod:`.stack` holds their sparse
matrices (:mod:`.lowrank` those of a truncated SVD), :mod:`.features` what they read, :mod:`.networks` their
weights, :mod:`.masks` their randomness, :mod:`.training` the loop, :mod:`.descent` its step, which
:mod:`.replay` records on a GPU. :mod:`.filters` and :mod:`.attention` are what DFNet adds.
"""
