# Everything a developer types. Needs Python 3.11+, git and make; the rest comes from the lock files.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DOCS := .venv-docs
PIP := $(BIN)/pip install -q --disable-pip-version-check
WORKERS ?= 3
# Tests start hundreds of processes of ours: without stored bytecode each compiles all modules again.
export PYTHONDONTWRITEBYTECODE =

.PHONY: run dev demo demo-kubernetes test tofu check format docs bench faults lock clean

EXAMPLE := examples/noticeboard

## run: start everything on this machine, show an app from sync to install, serve until Ctrl-C
run: $(VENV)/.run
	$(BIN)/exclave dev --demo $(EXAMPLE)

## dev: start everything on this machine, serve until Ctrl-C
dev: $(VENV)/.run
	$(BIN)/exclave dev

## demo: the same in a throw-away folder on free ports, then exit 0 or 1
demo: $(VENV)/.run
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	$(BIN)/exclave dev --demo $(EXAMPLE) --exit --data "$$folder/data" --control-port 0 --runner-port 0

## demo-kubernetes: an app of charts and manifests on a real Kubernetes API server, then exit 0 or 1
demo-kubernetes: $(VENV)/.dev
	$(BIN)/python -m tests.support.kubernetes_demo

## test: all tests, on SQLite and PostgreSQL
test: $(VENV)/.dev
	$(BIN)/pytest -q -n $(WORKERS) --dist worksteal

## tofu: the Terraform tests once more with OpenTofu, which a runner builds first: minutes, once
tofu: $(VENV)/.dev
	EXCLAVE_TEST_TOOLS=required EXCLAVE_TEST_TOFU=1 $(BIN)/pytest -q -n $(WORKERS) tests/integration/runner/terraform -k tofu

## check: lint, format, types, import contracts
check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

## format: let ruff format and fix
format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only -q .
	$(BIN)/ruff format .

## docs: build the documentation into site/, with search; a dead link is an error
docs: $(DOCS)/.ready
	$(DOCS)/bin/sphinx-build -q -W --keep-going -c docs -d $(DOCS)/.doctrees . site
	@echo "Open site/docs/index.html"

## bench: one JSON line per measure; ONLY=<measure> runs one
bench: $(VENV)/.bench
	$(BIN)/python -m tests.bench $(ONLY)

## faults: simulation and fuzzing with as many seeds as you like (SEEDS, INTERLEAVINGS, START), then kill loops
SEEDS ?= 2000
INTERLEAVINGS ?= 10000
START ?= 0
faults: $(VENV)/.dev
	$(BIN)/python -m tests.faults.sim --seeds $(SEEDS) --start $(START) --jobs $(WORKERS)
	$(BIN)/python -m tests.faults.interleaving --seeds $(INTERLEAVINGS) --start $(START) --jobs $(WORKERS)
	$(BIN)/python -m tests.integration.template.fuzz --seeds $(SEEDS) --start $(START)
	$(BIN)/python -m tests.unit.appconfig.fuzz --seeds $(SEEDS) --start $(START)
	EXCLAVE_TEST_KILLS=20 $(BIN)/pytest -q tests/faults -k "kill"

## lock: resolve the dependencies again (needs uv)
RESOLVE := uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --no-header
COMPILE := $(RESOLVE) pyproject.toml
lock:
	$(COMPILE) --extra server --group build -o requirements/run.lock
	$(COMPILE) --extra server --group build --group dev -o requirements/dev.lock
	$(COMPILE) --extra server --group build --group dev --group bench -o requirements/bench.lock
	$(RESOLVE) --group docs -o requirements/docs.lock
	$(COMPILE) --constraint requirements/run.lock -o src/exclave/runner/runner.lock

clean:
	rm -rf $(VENV) $(DOCS) site .exclave .mypy_cache .ruff_cache .hypothesis

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit("Exclave needs Python 3.11 or newer; set PYTHON=… to name one." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.%: requirements/%.lock pyproject.toml $(VENV)/pyvenv.cfg
	$(PIP) --require-hashes -r $<
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(DOCS)/.ready: requirements/docs.lock
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/pip install -q --disable-pip-version-check --require-hashes -r $<
	@touch $@
