# `make demo` and `make test` do all set-up themselves; PYTHON chooses the interpreter.
PYTHON ?= python3
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := .venv/$(SCRIPTS)
READY := .venv/ready
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

DOCS_READY := .venv/docs-ready

.PHONY: demo test test-minimum browser-test screenshots lint types bench spark-demo test-clusters docs dist fuzz kills clean

demo: $(READY)
	$(BIN)/nodecopy demo --out demo

test: lint types
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

# All tests with the oldest versions that pyproject.toml allows, in an environment of their own.
test-minimum: .venv/minimum/ready
	OMP_NUM_THREADS=1 .venv/minimum/$(SCRIPTS)/pytest -n 2 --dist worksteal

.venv/minimum/ready: $(READY)
	$(INSTALL) uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv/minimum
	$(BIN)/uv pip install --quiet --python .venv/minimum --resolution lowest-direct \
	  -e '.[all]' --group dev
	touch $@

# The report page in a real browser: Chromium of the system, or Playwright's own where nobody may install that.
browser-test: .venv/browser
	$(BIN)/pytest tests/browser

screenshots: .venv/browser demo
	$(BIN)/python -m tests.browser.screenshots demo/report.html docs

.venv/browser: $(READY)
	$(INSTALL) playwright
	command -v chromium >/dev/null \
	  || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq chromium; } \
	  || $(BIN)/playwright install chromium
	if command -v npm >/dev/null; then npm install --silent --prefix .venv/npm axe-core@4.14.0; fi # accessibility
	touch $@

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: $(READY)
	$(BIN)/mypy

BENCHES := sampling statistics inference classification custom_network recommendation expected tables attacks defence robust_networks generators blocks links

bench: $(READY)
	for one in $(BENCHES); do \
		$(BIN)/python -m benchmarks.bench_$$one | tee results/benchmarks/$$one.txt || exit 1; done

# Damaged files for every reader, loader, the store and the TOML parser, in processes of 1,000 inputs with limits on
# memory and time; then all wrong types and crafted arrays for every public name, each in a process of its own. All of it
# twice: as users run it, and with compiled code for small input, too, whose bounds are checked.
fuzz: $(READY)
	for checks in 0 1; do \
		export NUMBA_BOUNDSCHECK=$$checks NUMBA_CACHE_DIR=.venv/numba-$$checks; \
		for first in $$(seq 0 1000 99000); do \
			$(BIN)/python -m tests.fuzzing $$first $$((first + 1000)) || exit 1; done; \
		for name in $$(grep -oE '^   nodecopy\.[A-Za-z_.]+$$' docs/api.md); do \
			$(BIN)/python -m tests.contracts.wrong_arguments --all $$name 2>/dev/null || { echo $$name; exit 1; }; done; \
	done

# Every command that writes, killed at every call that changes the file system; needs Linux and a C compiler.
kills: $(READY)
	$(BIN)/python -m tests.kills

# Spark and Dask for real, on this machine; Spark needs a Java of version 17 or later.
spark-demo: .venv/clusters
	$(BIN)/python -m examples.clusters.demo

test-clusters: .venv/clusters
	OMP_NUM_THREADS=1 $(BIN)/pytest tests/cluster

.venv/clusters: $(READY)
	$(INSTALL) -e '.[all,spark,cluster]'
	touch $@

docs: $(DOCS_READY)
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -j 2 -W --keep-going -q docs docs/_build/html
	@echo 'open docs/_build/html/index.html'

# The wheel and the source archive: built, checked, and the wheel installed and tried in an environment of its own.
dist: export PYTHONPATH =
dist:
	rm -rf build/dist dist
	$(PYTHON) -m venv build/dist/tools
	build/dist/tools/$(SCRIPTS)/pip install --quiet --disable-pip-version-check build twine
	build/dist/tools/$(SCRIPTS)/python -m build --outdir dist
	build/dist/tools/$(SCRIPTS)/twine check --strict dist/*
	$(PYTHON) -m venv build/dist/try
	build/dist/try/$(SCRIPTS)/pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd build/dist && try/$(SCRIPTS)/nodecopy doctor
	cd build/dist && try/$(SCRIPTS)/nodecopy sample karate --n 2 --out samples
	cd build/dist && try/$(SCRIPTS)/nodecopy stats karate --samples samples --quiet

$(DOCS_READY): $(READY)
	$(INSTALL) --group docs
	touch $@

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) 'pip>=25.1' # which knows groups of dependencies
	$(INSTALL) -e '.[all]' --group dev
	touch $@

clean:
	rm -rf .venv build dist demo docs/_build docs/api docs/gallery docs/tables docs/commands docs/pictures
