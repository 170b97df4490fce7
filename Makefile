# msmq-fast: every target works on a fresh clone, without root. Needs python3 (3.11 or newer, with headers) and a C compiler.
#   make run          a queue manager on an embedded store in ./data    make run ARGS="--port 1901"
#   make test         builds what changed, then the tests (under 10 minutes)    make test ARGS="tests/qm -k expiry" JOBS=0
#   make test-long    the rest: crash, fault, packaging and interoperability tests
#   make lint         ruff, mypy, import rules, hadolint        make conformance   what the tests prove of each protocol document
#   make bench        micro-benchmarks, then the load generator        make build   sdist and wheel in dist/

PYTHON ?= python3
VENV ?= .venv
DATA ?= data
ARGS ?=
JOBS ?= 2
BIN := $(VENV)/bin
# Tests start many processes: what they import is compiled once, whatever the shell says of that.
PYTEST := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(abspath $(VENV))/pycache $(BIN)/python -m pytest
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

SOURCES := $(wildcard $(addprefix src/_native/*.,pyx pxd pxi h c))

.PHONY: run test test-long lint bench conformance build clean
.DELETE_ON_ERROR:

run: $(VENV)/.built
	@exec $(BIN)/msmq-fast serve --data $(DATA) $(ARGS)

test: $(VENV)/.built $(VENV)/.test-tools
	$(PYTEST) -m "not long" --numprocesses $(JOBS) --dist loadfile $(ARGS)

test-long: $(VENV)/.built $(VENV)/.test-tools $(VENV)/.lint-tools
	MSMQ_FAST_TESTS_EXEC=1 $(PYTEST) -m long $(ARGS)

lint: $(VENV)/.built $(VENV)/.test-tools $(VENV)/.lint-tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile

bench: $(VENV)/.built $(VENV)/.test-tools
	$(BIN)/python -m pytest bench --benchmark-only
	$(BIN)/python -m bench $(ARGS)

conformance: $(VENV)/.test-tools
	$(BIN)/python -m tools.conformance $(ARGS)

build: $(VENV)/.build-tools
	$(BIN)/python -m build --quiet --outdir dist

clean:
	rm -rf $(VENV) build dist src/*.egg-info src/msmq_fast/_native/*.so .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -not -path "./.git/*" -prune -exec rm -rf {} +

# Stamp files: each step runs again only when what it depends on has changed.

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "msmq-fast needs Python 3.11 or newer: make PYTHON=/path/to/python3.13 …" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || $(PYTHON) -m virtualenv --quiet $(VENV) 2>/dev/null \
	  || { rm -rf $(VENV); echo "$(PYTHON) has neither venv nor virtualenv: install python3-venv, or pip install virtualenv" >&2; exit 1; }
	@touch $@

$(VENV)/.build-tools: $(VENV)/.created pyproject.toml
	@$(BIN)/python tools/requirements.py build > $(VENV)/build-tools.txt
	$(PIP) --requirement $(VENV)/build-tools.txt build
	@touch $@

$(VENV)/.installed: $(VENV)/.build-tools pyproject.toml setup.py # pip would build the native modules aside: leave them to .built
	MSMQ_FAST_ONLY=none $(PIP) --no-build-isolation --editable .
	@touch $@

$(VENV)/.built: $(VENV)/.installed $(SOURCES)
	$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

$(VENV)/.test-tools $(VENV)/.lint-tools: $(VENV)/.%-tools: $(VENV)/.created pyproject.toml
	@$(BIN)/python tools/requirements.py $* > $(VENV)/$*-tools.txt
	$(PIP) --requirement $(VENV)/$*-tools.txt
	@touch $@
