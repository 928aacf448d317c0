# One virtual environment with the pinned dependencies serves all targets.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

.PHONY: demo help test test-all lint docs notebooks verify-reports spot-check faults build clean

demo: .venv/installed  ## fine-tuning, Gaussian and radial VCL on drawn characters, half a minute on two quiet cores
	$(BIN)/vcl-radial run split-glyphs-multi-head --seeds 2

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1: /p' $(MAKEFILE_LIST)

test: .venv/installed  ## the tests, but for those that need data, processes or long: 5 minutes
	OMP_NUM_THREADS=1 $(BIN)/pytest -n logical -m "not data and not processes and not slow"

# MARKED="data or processes or slow" runs those alone.
test-all: .venv/installed  ## every test; those of published data where VCL_RADIAL_DATA is set
	OMP_NUM_THREADS=1 $(BIN)/pytest -n logical $(if $(MARKED),-m "$(MARKED)")

lint: .venv/installed  ## ruff, and mypy strict on the package
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/installed  ## the site in build/site; python -m http.server -d build/site shows it with its search
	OMP_NUM_THREADS=1 $(BIN)/mkdocs build --strict --quiet

notebooks: .venv/installed  ## docs/notebooks anew: the notebooks of examples/, run
	$(BIN)/python -m docs.site.notebooks

verify-reports: .venv/installed  ## every page of reports/ is what its files make
	OMP_NUM_THREADS=1 $(BIN)/pytest -q tests/docs/test_reports.py

spot-check: .venv/installed  ## cheap runs of the claims again, and their numbers; 20 minutes, with data
	OMP_NUM_THREADS=1 $(BIN)/python tests/spot_check.py

faults: .venv/installed  ## kills, full disks, damaged files: what is lost? Linux, about an hour
	$(BIN)/python tests/faults --to reports/reliability.md

build: .venv/installed  ## wheel and sdist in dist/
	$(BIN)/python -m build

clean:  ## without the environment and what was built
	rm -rf .venv dist build *.egg-info

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@
