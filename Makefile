# `make demo` and `make test` need python3 and make; everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
OLD := .venv-oldest
ONE_THREAD := SCIPY_ARRAY_API=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: demo test lint types rooms unit test-oldest bench figures docs package fuzz clean

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
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --doctest-modules src tests

# The core tests with the oldest release of every dependency that pyproject.toml allows.
test-oldest: $(OLD)/.installed
	$(ONE_THREAD) $(OLD)/bin/python -m pytest -n 2 $(addprefix tests/test_, $(addsuffix .py, algebra dask distances \
	  estimator geometry methods missing new_samples plots readers scaling scores solver sparse streamed torch_backend))

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

figures: $(VENV)/.dev
	$(BIN)/python docs/figures.py
	$(BIN)/python docs/command_line.py

fuzz: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --minutes 10

# The site, docs/_build/html/index.html; a warning is an error.
docs: $(VENV)/.docs
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs docs/_build/html

# Wheel and sdist in dist/, each tried out in an environment of its own, far from this folder.
package: $(VENV)/.build
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python requirements/try_package.py dist

clean:
	rm -rf $(VENV) $(OLD) demo build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis fuzz-crashes .import_linter_cache
	rm -rf docs/_build docs/api docs/auto_gallery docs/sg_execution_times.rst

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(PIP) -e ".[plots]"
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP) -e ".[dev]"
	touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(PIP) -e ".[docs]"
	touch $@

$(VENV)/.build: | $(BIN)/python
	$(PIP) "build>=1.2"
	touch $@

$(OLD)/.installed: pyproject.toml requirements/oldest.txt
	$(PYTHON) -m venv --clear $(OLD)
	$(OLD)/bin/python -m pip --disable-pip-version-check install --quiet -c requirements/oldest.txt -e ".[test,all]"
	touch $@
