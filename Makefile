# Every target sets up what it needs; the machine only has to have Python 3.11 or newer.
CANDIDATES := python3.11 python3.12 python3.13 python3.14 python3 python
NEW_ENOUGH = import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in $(CANDIDATES); do $$p -c "$(NEW_ENOUGH)" 2>/dev/null && echo $$p && break; done)
NO_PYTHON = no Python 3.11 or newer with venv among $(CANDIDATES): install one, or say make PYTHON=/path/to/python
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# environments for the tests that need extras: name -> extras that get along in one, separated by commas
EXTRAS_light := hmm,topics,dask,dp,studies,browser,plot,microstates,anndata,mne
EXTRAS_rounds := flower,nvflare
EXTRAS_jax := jax,dynamax
EXTRAS_torch := torch,gp
EXTRAS_docs := docs
# packages that are installed there without what they require, and the marks of their tests: BERTopic brings torch by way
# of programs that its topics do without; POT is a rival in the study of images
ALONE_light := bertopic tqdm
ALONE_torch := pot
MARKS_light := bertopic
ENVIRONMENTS := light rounds jax torch
comma := ,
space := $() $()
EXTRAS := $(strip $(subst $(comma), ,$(foreach name,$(ENVIRONMENTS),$(EXTRAS_$(name)))))
MARKERS := $(EXTRAS) $(strip $(foreach name,$(ENVIRONMENTS),$(MARKS_$(name)))) slow
DEFAULT := not ($(subst $(space), or ,$(MARKERS)))
# with the oldest versions: tests that call most of what is imported, and the examples of families, kinds and adapters
OLDEST_TESTS := $(patsubst %,tests/test_%.py,gaussian matching prior files cli estimator) $(addprefix src/modelweld/,families kinds libraries)

.DEFAULT_GOAL := help
.PHONY: help demo test test-processors lint fuzz audit sbom wheel package oldest hooks test-all bench picture docs chromium clean

help:   ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.demo   ## four hospitals, one fused model
	$(BIN)/modelweld demo

# two processes on two cores: with two threads each, those of libraries spend most of their time waiting for each other
test docs oldest package: export OMP_NUM_THREADS = 1
test-%: export OMP_NUM_THREADS = 1
test: $(VENV)/.dev   ## style, types and the default test suite
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target compiled-sweeps compiled-chains lint
	$(BIN)/pytest --numprocesses 2 --dist worksteal -m "$(DEFAULT)"

lint: $(VENV)/.dev   ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell

compiled-%: $(VENV)/.dev
	$(BIN)/python tests/compile_first.py $*

fuzz: $(VENV)/.dev   ## readers against damaged files, writers against kills and full disks: a minute
	$(BIN)/python experiments/hostile/fuzz.py --smoke
	$(BIN)/python experiments/hostile/kills.py --smoke
	$(BIN)/python experiments/hostile/kills.py --disk

audit: $(VENV)/.dev   ## known vulnerabilities in the code and in what it needs
	$(BIN)/python .ci/audit.py

sbom: $(VENV)/.dev   ## the list of what is installed with modelweld, CycloneDX, into sbom.json
	$(BIN)/python .ci/audit.py --sbom > sbom.json

# the time of the last commit stands in the archive instead of the clock's
wheel: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct 2>/dev/null || echo 315532800)
wheel: $(VENV)/.dev   ## build the wheel twice: the same bytes
	rm -rf dist
	$(BIN)/python -m hatchling build -t wheel -d dist/first
	sleep 2
	$(BIN)/python -m hatchling build -t wheel -d dist
	cmp dist/first/*.whl dist/*.whl && sha256sum dist/*.whl

package: $(VENV)/.dev   ## wheel and source archive: checked, installed into an empty environment, tests run from the archive
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/python .ci/package.py dist "$(DEFAULT)"

oldest: .venv-oldest/.ready   ## tests with the oldest versions that pyproject.toml allows
	.venv-oldest/bin/pytest -p no:cacheprovider -m "$(DEFAULT)" $(OLDEST_TESTS)

.venv-oldest/.ready: pyproject.toml .ci/oldest.py
	$(or $(PYTHON),$(error $(NO_PYTHON))) -m venv .venv-oldest
	.venv-oldest/bin/python .ci/oldest.py > .venv-oldest/oldest.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -r .venv-oldest/oldest.txt -e . "pytest<9" hypothesis jsonschema skops
	touch $@

hooks: $(VENV)/.dev   ## make lint before every commit
	$(BIN)/python $(PIP_INSTALL) pre-commit
	$(BIN)/pre-commit install

test-all: $(ENVIRONMENTS:%=test-%) test-slow   ## tests that need extras, in environments that have them, and slow ones

test-slow: $(VENV)/.dev
	$(BIN)/pytest -m "slow and not ($(subst $(space), or ,$(filter-out slow,$(MARKERS))))"

# which of them: PROCESSORS="numpy prescott haswell skylake generic", or all
PROCESSORS := numpy prescott
test-processors: $(VENV)/.dev   ## tests that compare numbers, as if on other processors
	$(BIN)/python .ci/processors.py "$(DEFAULT)" $(PROCESSORS)

test-%: .venv-%/.ready
	.venv-$*/bin/pytest -m "$(subst $(comma), or ,$(EXTRAS_$*))$(if $(MARKS_$*), or $(MARKS_$*))"

# numba does not notice changes in the other files a compiled function calls: so all is compiled anew
bench: export NUMBA_CACHE_DIR = $(CURDIR)/.pytest_cache/bench
bench: $(VENV)/.dev $(VENV)/.hmm   ## speed against the textbook version, side by side, and scale (minutes)
	rm -rf $(NUMBA_CACHE_DIR)
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/bare.py
	$(BIN)/python benchmarks/jobs.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/tables.py
	$(BIN)/python benchmarks/scale.py half
	$(BIN)/python benchmarks/scale.py million

docs: .venv-docs/.ready   ## the site, with its gallery run, into build/docs; links inside are checked
	.venv-docs/bin/sphinx-build --fail-on-warning --keep-going --quiet -d build/doctrees docs build/docs
	.venv-docs/bin/python docs/tools/check_site.py build/docs

picture: $(VENV)/.plot   ## redraw the README's picture
	$(BIN)/python docs/picture.py

clean:   ## remove environments and caches
	rm -rf .venv .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis build docs/gallery docs/reference

$(BIN)/python:
	$(or $(PYTHON),$(error $(NO_PYTHON))) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP_INSTALL) -e .
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP_INSTALL) -e .[dev]
	touch $@ $(VENV)/.demo

$(VENV)/.plot: pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP_INSTALL) -e .[plot]
	touch $@

$(VENV)/.hmm: pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP_INSTALL) -e .[hmm]
	touch $@

.PRECIOUS: .venv-%/.ready
.venv-%/.ready: pyproject.toml
	$(or $(PYTHON),$(error $(NO_PYTHON))) -m venv .venv-$*
	.venv-$*/bin/python $(PIP_INSTALL) -e .[dev,$(EXTRAS_$*)]
	$(if $(ALONE_$*),.venv-$*/bin/python $(PIP_INSTALL) --no-deps $(ALONE_$*))
	touch $@

test-light: chromium

chromium:
	(command -v chromium && command -v chromedriver) || (apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium chromium-driver)
