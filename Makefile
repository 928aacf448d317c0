# One virtual environment with the pinned dependencies serves all targets.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: demo test lint faults build clean

demo: .venv/installed  ## radial against Gaussian VCL on split-digits, in under a minute
	$(BIN)/vcl-radial run split-digits-multi-head --seeds 3

test: .venv/installed  ## the test suite
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto

lint: .venv/installed  ## ruff, and mypy strict on the package
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

faults: .venv/installed  ## kills, full disks, damaged files: what is lost? Linux, about 40 minutes
	$(BIN)/python tests/faults --to reports/reliability.md

build: .venv/installed  ## wheel and sdist in dist/
	$(BIN)/python -m build

clean:
	rm -rf .venv dist build *.egg-info

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@
