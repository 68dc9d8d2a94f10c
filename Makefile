# Every target sets up what it needs; the machine only has to have Python 3.11 or newer.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
# environments for the tests that need extras: name -> extras, separated by commas
EXTRAS_hmm := hmm
EXTRAS_jax := jax,dynamax
EXTRAS_torch := torch,gp
EXTRAS_topics := topics
EXTRAS_browser := browser,plot
EXTRAS_studies := studies
EXTRAS_flower := flower
EXTRAS_nvflare := nvflare
EXTRAS_dask := dask
EXTRAS_dp := dp
ENVIRONMENTS := hmm jax torch topics browser studies flower nvflare dask dp
comma := ,
space := $() $()
MARKERS := $(strip $(subst $(comma), ,$(foreach name,$(ENVIRONMENTS),$(EXTRAS_$(name)))))

.PHONY: chromium demo test test-all lint bench picture clean

demo: $(VENV)/.demo   ## four hospitals, one fused model
	$(BIN)/python -m modelweld.demo

test: $(VENV)/.dev   ## style, types and the default test suite
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -m "not ($(subst $(space), or ,$(MARKERS)))"

test-all: $(ENVIRONMENTS:%=test-%)   ## the tests that need extras, each in an environment of its own

test-%: .venv-%/.ready
	.venv-$*/bin/pytest -m "$(subst $(comma), or ,$(EXTRAS_$*))"

# numba does not notice changes in the other files a compiled function calls: so all is compiled anew
bench: export NUMBA_CACHE_DIR = $(CURDIR)/.pytest_cache/bench
bench: $(VENV)/.dev   ## speed against the textbook version, side by side, and scale (minutes)
	rm -rf $(NUMBA_CACHE_DIR)
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/scale.py half
	$(BIN)/python benchmarks/scale.py million

picture: $(VENV)/.plot   ## redraw the README's picture
	$(BIN)/python docs/picture.py

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .[dev]
	touch $@ $(VENV)/.demo

$(VENV)/.plot: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .[plot]
	touch $@

.venv-%/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check -e .[dev,$(EXTRAS_$*)]
	touch $@

test-browser: chromium

chromium:
	command -v chromium chromedriver || (apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium chromium-driver)

.PRECIOUS: .venv-%/.ready

clean:
	rm -rf .venv .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis
