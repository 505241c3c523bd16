# Every target makes what it needs from nothing: a virtual environment of its own in .venv, with the versions of
# constraints.txt. Needed on the machine: make, Python 3.11 or newer, a package index. pip's own settings apply, so
# `PIP_EXTRA_INDEX_URL=... make test` takes PyTorch from an index with smaller, CPU-only builds.

PYTHON ?= python3
# Arguments to pass on: make test ARGS="-k ledger -x", make demo ARGS="--help".
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
INSTALLED := $(VENV)/installed
REAL := benchmarks/.venvs/real

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test coverage corpus bottlenecks real gpu-test lint bench docs clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(INSTALLED) ## a small real data set: a broken loader diagnosed, mended, trained, stopped and resumed
	$(BIN)/headrace demo $(ARGS)

# Processes among which the tests are shared; many tests start some more.
JOBS ?= 2
test: $(INSTALLED) ## all tests: the suite, the doctests of src, every block of README and guide
	$(PY) -m pytest -n $(JOBS) --dist worksteal --doctest-modules src tests $(ARGS)

# A lamp to search by, not a gate: no threshold. It sees this process only: measured workers start later, die later and
# print more, and the tests of how workers die would notice.
coverage: $(INSTALLED) ## the tests once more, slower, and which branches they take
	@rm -f .coverage .coverage.*
	$(PY) -m coverage run -m pytest --doctest-modules src tests $(ARGS)
	@$(PY) -m coverage combine --quiet && $(PY) -m coverage report --skip-covered --sort=cover

corpus: $(INSTALLED) ## the doctor's exam: sick and healthy loaders as users write them; per rule: found, missed, false alarms
	$(PY) tests/corpus/corpus.py $(ARGS)

bottlenecks: $(INSTALLED) ## the exam of `headrace measure`: loops whose limit is known; one at a time, the better part of an hour
	$(PY) tests/bottlenecks/run.py $(ARGS)

real: $(REAL)/installed ## the same exam with timm, Lightning, transformers, MONAI, torchvision: gigabytes, in an environment apart
	$(REAL)/bin/python tests/real/run.py $(ARGS)

gpu-test: $(INSTALLED) ## only the tests that need a CUDA device: a minute on a machine that has one
	$(PY) -m pytest -m gpu tests $(ARGS)

lint: $(INSTALLED) ## format, lint, types, arrows between rooms, generated pages, changelog
	$(PY) -m ruff format --check
	$(PY) -m ruff check
	$(PY) -m mypy
	$(BIN)/lint-imports
	$(PY) tools/docs.py --check
	$(PY) tools/changelog.py --check

bench: $(INSTALLED) ## the benchmarks: a table here, every value in benchmarks/results/
	$(PY) -m benchmarks.run $(ARGS)

docs: $(INSTALLED) ## the generated pages anew (docs/rules and the report's schema), then the links of all pages
	$(PY) tools/docs.py
	$(PY) -m pytest -q tests/docs/test_links.py

clean: ## removes what these targets made, the virtual environment too
	rm -rf $(VENV) build dist htmlcov .coverage .coverage.* .hypothesis .mypy_cache .ruff_cache .pytest_cache \
		.import_linter_cache src/*.egg-info headrace-demo site
	find src tests tools benchmarks docs examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The stamp is younger than these files exactly when the environment holds what they say, C files compiled. A venv whose
# interpreter is gone is made anew; a half-made one (an interrupted installation) has no stamp and is completed.
$(INSTALLED): pyproject.toml constraints.txt hatch_build.py src/headrace/native.py $(wildcard src/headrace/engine/*/*.c)
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "headrace needs Python 3.11 or newer; \
	this is " + sys.version.split()[0] + " (" + sys.executable + "). Try: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	@$(PY) -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]' --constraint constraints.txt
	@touch $@

$(REAL)/installed: tests/real/requirements.txt pyproject.toml
	@$(REAL)/bin/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(REAL)
	$(REAL)/bin/python -m pip install --quiet --disable-pip-version-check --requirement tests/real/requirements.txt --editable .
	@touch $@
