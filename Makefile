# make sweep | test | soak | check | docs | bench: each creates .venv and installs when needed, and nothing when not.
VENV ?= .venv
STORE ?= store
BIN = $(VENV)/bin
INSTALLED = $(VENV)/.installed
BENCH_INSTALLED = $(VENV)/.installed-bench

.PHONY: install sweep test soak check docs bench
sweep: $(INSTALLED)
	$(BIN)/koco sweep flows/sweeps/ill-conditioned.toml --store $(STORE)

test: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 --dist loadfile

soak: $(INSTALLED)
	$(BIN)/python -m pytest -m soak -s

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/lint-imports

docs: $(INSTALLED)
	$(BIN)/properdocs build --strict --quiet
	@echo "documentation: build/site/index.html"

bench: $(BENCH_INSTALLED)
	$(BIN)/python -m tests.bench

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

$(BENCH_INSTALLED): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	touch $@
