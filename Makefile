# Each target makes .venv when it is missing or older than pyproject.toml.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
TOGETHER := $(BIN)/python -m pytest --dist

# Tests start hundreds of processes: bytecode is kept, also where the environment says otherwise.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: paper test test-slow fence flakes check bench soak demo headline figures docs dist browser database clean

paper: $(READY)  ## reproduce the paper: results/paper/report.html
	$(BIN)/python -m experiments paper --out results/paper

test: $(READY) .venv-fuzz/.ready .venv-docs/.ready .venv-tools/.ready browser database  ## all tests but the long ones, compiled; then a short run of the kernels interpreted
	$(BIN)/lexbandits warm
# half of the time a test waits for a browser, a service or a lease: four processes keep two cores busy
	$(TOGETHER) loadfile --numprocesses 4 --no-loadscope-reorder -m "not slow"
	LEXBANDITS_JIT=0 $(TOGETHER) worksteal --numprocesses 2 -q -m interpreted $$(grep -rl mark.interpreted tests --include=test_*.py)

test-slow: $(READY) .venv-fuzz/.ready .venv-docs/.ready .venv-tools/.ready browser database  ## error rates over thousands of seeds, workers killed for long, all examples
	$(TOGETHER) worksteal --numprocesses 2 -m slow
	EXAMPLES=all $(TOGETHER) worksteal --numprocesses 2 -q -m "drawn and not slow" $$(grep -rl up_to tests --include=test_*.py)

fence: $(READY)  ## write anew llms.txt and what tests/test_fence.py and tests/study/test_digest.py compare with, when it is meant to change
	$(BIN)/python .ci/llms.py
	PYTHONPATH=tests $(BIN)/python tests/test_fence.py
	PYTHONPATH=tests $(BIN)/python -W ignore tests/study/test_digest.py

ROUNDS ?= 20
flakes: $(READY) browser database  ## the timed tests twenty times on a busy machine, and what failed (ROUNDS=2 CASES=tests/service); not in CI
	$(BIN)/lexbandits warm
	ROUNDS=$(ROUNDS) $(BIN)/python .ci/flakes.py $(CASES)

check: $(READY)  ## format, lint, types, layers, words
	$(BIN)/ruff format --check src tests benchmarks examples experiments
	$(BIN)/ruff check src tests benchmarks examples experiments
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/words.py

bench: $(READY) .venv-bench/.ready browser database  ## speed against the random number generator and against peers
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/studies.py
	$(BIN)/python benchmarks/service.py
	$(BIN)/python benchmarks/first.py

SECONDS ?= 1200
soak: $(READY) database  ## twenty minutes of everything that can go wrong (SECONDS=60: one); not in CI
	$(BIN)/python benchmarks/soak.py $(SECONDS)

demo: $(READY)  ## a live study in under a minute: which compression codec? examples/compression/README.md
	mkdir -p results
	rm -f results/demo.db*
	$(BIN)/lexbandits run examples/compression/study.toml --workers 2 --storage results/demo.db -- \
		$(BIN)/python examples/compression/measure.py {codec} {level} {item}
	$(BIN)/lexbandits study explain compression --storage results/demo.db
	$(BIN)/lexbandits study report compression results/demo.html --storage results/demo.db
	@echo "live, with every study beside it: $(BIN)/lexbandits serve --storage results/demo.db"

headline: $(READY)  ## the table of docs/choosing.md
	$(BIN)/python -m experiments headline

figures: $(READY) browser  ## every figure in docs/
	$(BIN)/python -m experiments screenshots docs/images
	$(BIN)/python -m experiments paper --out results/paper --only samples
	$(BIN)/python -m experiments misspecification --out results/misspecification
	cp results/paper/figures/samples.png results/misspecification/misspecification.svg docs/
	$(BIN)/lexbandits bounds --paper 10 --paper 20 --paper 30 --figure docs/lower-bound.svg
	$(BIN)/python -m experiments practice --out results/practice && cp results/practice/practice.svg docs/
	$(BIN)/python -m experiments zone docs/zone.svg
	$(BIN)/python -m experiments regret --page docs/regret.md && cp results/regret/regret.svg docs/

docs: .venv-docs/.ready  ## the documentation as a site, strictly: results/site/docs/index.html
	.venv-docs/bin/sphinx-build --fail-on-warning --keep-going --quiet -c docs -d results/site.doctrees . results/site
	@echo "results/site/docs/index.html"

dist: $(READY)  ## dist/: a wheel and an sdist, installed into clean environments and tried there
	$(BIN)/python .ci/dist.py

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "lexbandits needs Python 3.11 or newer")'
	$(PYTHON) -m venv --clear $(VENV)
	$(INSTALL) --upgrade "pip>=25.1"
	$(INSTALL) --constraint constraints.txt --editable ".[research,dask,ray,postgres,parquet,serve]" --group dev
	touch $@

.venv-bench/.ready: benchmarks/peers.txt
	$(PYTHON) -m venv --clear .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# The service is tried out by a fuzzer, apart since its pytest plugin would load with every test.
.venv-fuzz/.ready: tests/service/fuzzer.txt
	$(PYTHON) -m venv --clear .venv-fuzz
	.venv-fuzz/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# The site is built beside the package, whose names it documents.
.venv-docs/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--editable ".[research]" --group docs
	touch $@

# Tools whose results are read and whose studies go on here; what they do not bring themselves is that of .venv.
.venv-tools/.ready: tests/read/tools.txt $(READY)
	$(PYTHON) -m venv --clear .venv-tools
	$(BIN)/python -c 'import site; print(site.getsitepackages()[0])' > "$$(.venv-tools/bin/python -c 'import site; print(site.getsitepackages()[0])')/ours.pth"
	.venv-tools/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# The report is looked at in a real browser: Debian's Chromium, installed where that is possible.
browser:
	@if ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing chromium for the report's tests"; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium; } >/dev/null 2>&1 || \
			echo "chromium could not be installed; the tests will say what they skip"; \
	fi

# Studies are tested on a real PostgreSQL: Debian's, started by the tests on a port of its own.
database:
	@if ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && ! command -v initdb >/dev/null && \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing postgresql for the tests of studies"; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql; } >/dev/null 2>&1 || \
			echo "postgresql could not be installed; the tests will say what they skip"; \
	fi

clean:
	rm -rf $(VENV) .venv-bench .venv-fuzz .venv-docs .venv-tools dist results .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
