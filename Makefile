# Every target does its own set-up, in .venv, once; the stamps in it say for which pyproject.toml.
#
# make PYTHON=python3.12 …   another interpreter, 3.10 to 3.13
# make TORCH='…' …           other arguments for pip to install PyTorch with; the product does not need it

PYTHON ?= python3
TORCH ?= torch==2.13.0

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq
MODELS ?= .models
QUESTION ?= how are .gitignore patterns matched

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast check format vsix bench models fuzz clean

help:
	@echo "make demo       ask a question about this repository's own code"
	@echo "make test       every check and every test"
	@echo "make test-fast  the tests that take no time"
	@echo "make check      style and types"
	@echo "make format     put the style right"
	@echo "make vsix       the VS Code extension, as one file"
	@echo "make bench      speed and memory beside semble and ripgrep (half an hour), into bench-results;"
	@echo "                with BENCH=FOLDER on judged repositories, quality too; SIZES=1000000 (see tests/bench)"
	@echo "make models     the model files that ship, anew from the manifest (hours; MODELS=FOLDER for"
	@echo "                what is between, BENCH=FOLDER to fit ranking, too); goes on where it stopped"
	@echo "make fuzz       thousands of random changes: the index equals one built from nothing"
	@echo "make clean      remove .venv and what tools left behind"

demo: $(VENV)/runs
	$(BIN)/meaning-lsp search "$(QUESTION)" server --limit 5 --cache-dir $(VENV)/cache

test: check
	$(BIN)/python -m pytest

test-fast: $(VENV)/tests
	$(BIN)/python -m pytest -m "not slow"

check: $(VENV)/tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(VENV)/tests
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

vsix: $(VENV)/pyvenv.cfg
	cd vscode-client && npm ci --no-audit --no-fund --ignore-scripts && PYTHON=../$(BIN)/python npm run --silent package

bench: $(VENV)/tests
	$(BIN)/python -m tests.bench $(if $(BENCH),--bench $(BENCH)) $(if $(SIZES),--sizes $(SIZES))

models: $(VENV)/tests
	$(BIN)/python -m export.models --out $(MODELS) $(if $(BENCH),--bench $(BENCH))

fuzz: $(VENV)/tests
	$(BIN)/python -m tests.bench.fuzz

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	cd vscode-client && rm -rf node_modules dist out wheel .workbench

# What searching needs.
$(VENV)/runs: pyproject.toml $(VENV)/pyvenv.cfg
	@echo "Installing the server into $(VENV) …"
	@$(PIP) --editable '.[cpu]'
	@touch $@

# What the tests need beside it. PyTorch first and on its own, so that its choice of a build is made once, by TORCH.
$(VENV)/tests: pyproject.toml $(VENV)/pyvenv.cfg
	@echo "Installing what the tests need into $(VENV); the first time takes minutes …"
	@$(PIP) $(TORCH)
	@$(PIP) --editable '.[cpu,export,test]'
	@touch $(VENV)/runs $@

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' 2>/dev/null || { \
	  echo "meaning-lsp needs Python 3.10 to 3.13; $(PYTHON) is: $$($(PYTHON) --version 2>&1)"; \
	  echo "Name another one: make PYTHON=python3.12 …"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments: its venv or ensurepip module is missing."; \
	  echo "Debian and Ubuntu have it in a package: sudo apt-get install python3-venv"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
