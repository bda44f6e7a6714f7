# `make demo` and `make test` need python3 and make; everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

.PHONY: demo test lint types rooms unit bench figures fuzz clean

demo: $(VENV)/.demo
	$(BIN)/gwntf demo

test: lint types rooms unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

rooms: $(VENV)/.dev
	$(BIN)/lint-imports

unit: $(VENV)/.dev
	SCIPY_ARRAY_API=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --doctest-modules src tests

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

figures: $(VENV)/.dev
	$(BIN)/python docs/figures.py
	$(BIN)/python docs/command_line.py

fuzz: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --minutes 10

clean:
	rm -rf $(VENV) demo build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis fuzz-crashes .import_linter_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(PIP) -e ".[plots]"
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP) -e ".[dev]"
	touch $@
