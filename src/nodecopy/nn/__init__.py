"""One training engine for many models at once; torch appears here first.

B models that differ in graph, split and seed are trained together: :mod:`.stack` holds their sparse and
low-rank matrices, :mod:`.features` their feature matrices, :mod:`.networks` their weights, :mod:`.masks`
their dropout masks, :mod:`.training` the loop and :mod:`.steps` its step. On a CPU most networks are computed
one by one in compiled code: :mod:`.compiled_networks`, :mod:`.epoch_kernels`. :mod:`.filters` and
:mod:`.attention` are the parts of DFNet. :mod:`.module_networks` evaluates modules of users, and
:mod:`.module_training` trains them.
"""
