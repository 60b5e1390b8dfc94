"""One training engine for many models at once; torch appears here first.

B models that differ in graph, split and seed are trained as one: :mod:`.stack` holds their sparse
matrices, :mod:`.networks` their weights, :mod:`.masks` their randomness, :mod:`.training` the loop.
"""
