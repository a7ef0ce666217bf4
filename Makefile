# `make run` and `make test` are all the set-up there is on a machine with python3 and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input install --quiet
# For two cores. The tests that start processes wait for them more than they compute: two workers a core.
# No two modules share a server, so a worker that has nothing left takes from the others.
UNIT_WORKERS ?= 2
WORKERS ?= 4
# Tests and benchmarks start hundreds of interpreters; each would compile every module again.
COMPILED := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python
PYTEST := $(COMPILED) -m pytest --dist worksteal
# Nothing is exported or taken back here: what `run` starts gives its environment on.

.DEFAULT_GOAL := help
.PHONY: help run install fleet setup setup-dev check test lint format types imports unit integration e2e \
	test-long test-relay test-browser test-harness harness-matrix bench picture lock tmux postgresql clean

help:
	@echo 'make run           the whole product on this machine: a workspace page, a session in a real pane'
	@echo 'make install       the-loop as a command: a link in ~/.local/bin'
	@echo 'make fleet         what a host of a fleet needs besides: docs/fleet.md'
	@echo 'make check         before a commit, within a minute: format, lint, types, import rules, quick unit tests'
	@echo 'make test          lint, types, import rules, unit, integration and end-to-end tests'
	@echo 'make test-long | test-relay | test-browser | test-harness | bench   what takes longer or needs more'
	@echo 'make lint | format | types | imports | unit | integration | e2e | picture | lock | clean'

run: setup tmux
	@echo 'Starting the demonstration …'
	$(BIN)/the-loop demo

# The systemd units run ~/.local/bin/the-loop, and most shells look there.
install: setup
	@sh scripts/link.sh "$(CURDIR)/$(BIN)/the-loop" "$(HOME)/.local/bin"

fleet: setup
	@sh scripts/provide.sh libpq
	$(PIP) --require-hashes -r requirements/fleet.txt

# --- the environment --------------------------------------------------------------------------------------------

setup: $(VENV)/.run
setup-dev: $(VENV)/.dev

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'the-loop needs Python 3.11 or newer; $(PYTHON) is older. Type: make PYTHON=python3.11' >&2; exit 1; }
	@PYTHON=$(PYTHON) sh scripts/provide.sh venv
	@echo 'Making a Python environment in $(VENV) …'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements/run.txt requirements/build.txt pyproject.toml | $(BIN)/python
	@echo 'Installing what the-loop needs into $(VENV); this happens once and takes up to a minute …'
	$(PIP) --require-hashes -r requirements/build.txt -r requirements/run.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.txt requirements/fleet.txt $(VENV)/.run
	$(PIP) --require-hashes -r requirements/dev.txt -r requirements/fleet.txt
	@touch $@

tmux:
	@sh scripts/provide.sh tmux

# The tests of a fleet make a server of their own. Where its programs are missing and may not be installed, these tests
# say so and are skipped; with CI=true they fail.
postgresql:
	-@sh scripts/provide.sh postgresql

# --- the checks -------------------------------------------------------------------------------------------------

# One after the other, cheapest first, so that the first thing wrong is the last thing printed.
test:
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory types
	@$(MAKE) --no-print-directory imports
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory integration
	@$(MAKE) --no-print-directory e2e

# Before a commit: what takes under a minute on two cores. Tests that start processes are left to `make unit`.
QUICK := $(addprefix tests/unit/,model session loops chat config harness bot test_house.py test_docs.py)
check: setup-dev
	@$(MAKE) --no-print-directory lint types imports
	$(PYTEST) -q -n $(UNIT_WORKERS) $(QUICK)

lint: setup-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: setup-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# mypy refuses a folder without a Python file.
TYPED = $(foreach d,bot core embedded tests benchmarks examples,$(if $(shell find $(d) -name '*.py' 2>/dev/null | head -n 1),$(d))) \
	$(wildcard the_loop.py)
types: setup-dev
	$(BIN)/mypy $(TYPED)

imports: setup-dev
	$(BIN)/lint-imports --no-logo

unit: setup-dev tmux
	$(PYTEST) -n $(UNIT_WORKERS) tests/unit

# A folder that holds no test file yet is named and passed over; one with test files that runs none fails (pytest's 5).
suite = $(if $(shell find $(1) -name 'test_*.py' 2>/dev/null | head -n 1),$(PYTEST) -n $(WORKERS) $(1),@echo '$(1) holds no test yet')
integration: setup-dev tmux postgresql
	$(call suite,tests/integration)

e2e: setup-dev tmux postgresql
	$(call suite,tests/e2e)

# The end-to-end tests with the relay of a fleet between Slack and core: each product is a fleet of one.
test-relay: setup-dev tmux
	THE_LOOP_TEST_RELAY=1 $(PYTEST) -n $(WORKERS) tests/e2e

test-long: setup-dev tmux postgresql
	@$(MAKE) --no-print-directory test-relay
	$(PYTEST) -n $(UNIT_WORKERS) -m long --timeout 1800 tests/unit tests/integration tests/e2e

test-browser: setup-dev tmux
	@sh scripts/provide.sh chromium
	$(COMPILED) -m pytest --timeout 300 tests/browser

# HARNESS is one or several of the folders of tests/harness, else all. VERSION is a number, or `latest`; VERSIONS are
# several, else the oldest and the newest that its adapter calls tried. Each is installed into a folder of its own below
# .harness/.
HARNESS ?=
VERSION ?=
VERSIONS ?= $(VERSION)
test-harness: setup-dev tmux
	@env -u PYTHONDONTWRITEBYTECODE sh scripts/harness_suite.sh "$(HARNESS)" $(VERSIONS)

# Runs all versions that were tried, keeps how each case ended in tests/harness/results/, and writes
# docs/harness-matrix.md of all that is kept. Fails where a case did.
harness-matrix: setup-dev tmux
	@env -u PYTHONDONTWRITEBYTECODE sh scripts/harness_suite.sh --matrix "$(HARNESS)" $(VERSIONS)

# Writes docs/thread.png (the demonstration's page, as a thread in which somebody talks to a session) and docs/page.png
# (the service's own page).
picture: setup-dev tmux
	@sh scripts/provide.sh chromium
	$(COMPILED) -m tests.browser.picture docs/thread.png
	$(COMPILED) -m tests.browser.pagepicture docs/page.png

bench: setup-dev tmux postgresql
	@sh scripts/provide.sh chromium
	$(COMPILED) -m benchmarks

# --- upkeep -----------------------------------------------------------------------------------------------------

# Resolves again from requirements/*.in, in an environment of its own. Flags keep every index and path out of the files.
COMPILE := $(VENV)-lock/bin/pip-compile --quiet --allow-unsafe --generate-hashes --strip-extras --no-header \
	--no-emit-index-url --no-emit-find-links --annotation-style=line
lock:
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet pip-tools
	for part in build run fleet dev; do \
	  $(COMPILE) --output-file requirements/$$part.txt requirements/$$part.in || exit 1; done
	rm -rf $(VENV)-lock

clean:
	rm -rf $(VENV) $(VENV)-lock .harness .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist *.egg-info
