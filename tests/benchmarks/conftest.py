"""Leave benchmarks out of the collection of doctests where a library that they compare with is missing."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("networkit") else ["bench_*.py"]
