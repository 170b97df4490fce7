# msmq-fast: every target works on a fresh clone, without root. Needs python3 (3.11 or newer, with headers) and a C compiler.
#   make run          a queue manager on an embedded store in ./data    make run ARGS="--port 1901"
#   make test         builds what changed, then the tests (under 10 minutes)    make test ARGS="tests/qm -k expiry" JOBS=0
#   make smoke        one module or two of each folder of tests, in under a minute
#   make test-long    the rest: crash, fault, packaging and interoperability tests
#   make lint         ruff, mypy, import rules and circles, wiring, language, references, hadolint      make conformance   what the tests prove of each protocol document
#   make docs         the documentation site in build/site, links checked
#   make bench        micro-benchmarks, then the load generator        make build   sdist, wheel, SBOM, SHA256SUMS in dist/
#   make dotnet       System.Messaging for .NET in build/dotnet, with Debian's mcs
#   make man       man pages of the command line in build/man         make deb     the Debian package in dist/
#   make lock         resolves the dependencies anew and writes requirements/*.lock

PYTHON ?= python3
VENV ?= .venv
DATA ?= data
ARGS ?=
JOBS ?= 2
BIN := $(VENV)/bin
# Tests start many processes: what they import is compiled once, whatever the shell says of that.
PYTEST := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(abspath $(VENV))/pycache $(BIN)/python -m pytest
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# What is installed has the hashes of requirements/*.lock; what is compiled on the way uses the locked build tools.
LOCKED := $(PIP) --require-hashes --no-build-isolation --requirement

SOURCES := $(wildcard $(addprefix src/_native/*.,pyx pxd h c)) src/msmq_fast/store/decode.py

.PHONY: run man deb dotnet smoke test test-long long-tools lint docs bench conformance build lock clean
.DELETE_ON_ERROR:

run: $(VENV)/.built
	@exec $(BIN)/msmq-fast serve --data $(DATA) $(ARGS)

test: $(VENV)/.built $(VENV)/.test-tools
	$(PYTEST) -m "not long" --numprocesses $(JOBS) --dist loadfile $(ARGS)

# Only these modules are collected: all of them take longer to collect than these to run.
smoke: $(VENV)/.built $(VENV)/.test-tools
	$(PYTEST) -m smoke $(ARGS) $$(grep -rl --include='test_*.py' '^pytestmark = pytest.mark.smoke$$' tests)

long-tools: $(VENV)/.built $(VENV)/.test-tools $(VENV)/.lint-tools $(VENV)/.docs-tools $(VENV)/.browser-tools $(VENV)/.fuzz-tools $(VENV)/.chart-tools

test-long: long-tools
	MSMQ_FAST_TESTS_EXEC=1 $(PYTEST) -m long --missing=fail $(ARGS)

lint: $(VENV)/.built $(VENV)/.test-tools $(VENV)/.lint-tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/lint-imports --config tools/layers.toml
	$(BIN)/python -m tools.owners
	$(BIN)/python -m tools.circles
	$(BIN)/python -m tools.syncclient
	$(BIN)/python -m tools.prose
	$(BIN)/python -m tools.configuration
	$(BIN)/python -m tools.openapi
	$(BIN)/python -m tools.names
	$(BIN)/python -m tools.commands
	$(BIN)/hadolint Dockerfile

dotnet:
	sh contrib/dotnet/build.sh build/dotnet

docs: $(VENV)/.docs-tools
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

man: $(VENV)/.built
	$(BIN)/msmq-fast help --man build/man

deb: $(VENV)/.built $(VENV)/.wheel-tools
	$(BIN)/python -m tools.deb $(ARGS)

bench: $(VENV)/.built $(VENV)/.test-tools
	$(BIN)/python -m pytest bench --benchmark-only
	$(BIN)/python -m bench $(ARGS)

conformance: $(VENV)/.test-tools
	$(BIN)/python -m tools.conformance $(ARGS)

build: $(VENV)/.build-tools $(VENV)/.wheel-tools
	@rm -rf dist
	export SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || date +%s)} \
	  && $(BIN)/python -m build --sdist --no-isolation --quiet --outdir dist \
	  && $(BIN)/python -m tools.wheels dist \
	  && $(BIN)/python -m build --no-isolation --quiet --outdir dist packaging/client \
	  && $(BIN)/python -m build --no-isolation --quiet --outdir dist packaging/spark \
	  && $(BIN)/python -m tools.sbom dist
	cd dist && sha256sum * > SHA256SUMS.tmp && mv SHA256SUMS.tmp SHA256SUMS

lock: $(VENV)/.lock-tools
	$(BIN)/python -m tools.lock --uv $(BIN)/uv $(ARGS)

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

$(VENV)/.build-tools: $(VENV)/.created requirements/build.lock
	$(LOCKED) requirements/build.lock
	@touch $@

$(VENV)/.installed: $(VENV)/.build-tools requirements/runtime.lock pyproject.toml setup.py # the native modules: see .built
	$(LOCKED) requirements/runtime.lock
	MSMQ_FAST_ONLY=none $(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.built: $(VENV)/.installed $(SOURCES)
	$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

$(VENV)/.test-tools $(VENV)/.lint-tools $(VENV)/.docs-tools $(VENV)/.wheel-tools $(VENV)/.browser-tools $(VENV)/.fuzz-tools $(VENV)/.chart-tools: $(VENV)/.%-tools: $(VENV)/.build-tools requirements/%.lock
	$(LOCKED) requirements/$*.lock
	@touch $@

$(VENV)/.lock-tools: $(VENV)/.build-tools
	$(PIP) uv
	@touch $@
