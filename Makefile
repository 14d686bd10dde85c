# make sweep | test | test-all | test-python | test-system | soak | check | docs | bench: each creates the virtual environment and
# installs what it needs, and nothing that is there. With PYTHON=python3.13, another Python has an environment of its own.
PYTHON ?= python3
VENV ?= $(if $(filter python3,$(PYTHON)),.venv,.venv-$(notdir $(PYTHON)))
# the interpreter by its path; pyenv knows versions that are installed but not chosen
INTERPRETER = $$($(PYTHON) -c 'import sys; print(sys.executable)' 2> /dev/null \
	|| PYENV_VERSION=$$(pyenv versions --bare | paste -sd: -) pyenv which $(PYTHON))
STORE ?= store
BIN = $(VENV)/bin
# a file for each set of packages that is installed: those of pyproject.toml's extras
INSTALLED = $(VENV)/.installed-test
# what one run of the tests has compiled is there for the next one; what has not been added to for a month goes
COMPILED = $(CURDIR)/.cache/koco
PYTEST = find "$(COMPILED)/compiled" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -r {} + 2> /dev/null; \
	KOCO_CACHE="$${KOCO_CACHE:-$(COMPILED)}" $(BIN)/python -m pytest
# files in the order of tests/conftest.py: the longest first
BOTH_CORES = -n 2 --dist loadfile --no-loadscope-reorder --durations=20
# what the system tests use of Debian's packages
PACKAGES = aardvark-dns catatonit chromium debootstrap iproute2 iptables munge netavark podman runc slurm-client slurmctld slurmd

.PHONY: install which sweep test test-all test-python test-system test-packages soak check docs bench
sweep: $(INSTALLED)
	$(BIN)/koco sweep ill-conditioned --store $(STORE) --prefect

# what each change runs: all that needs no other program, in minutes. TESTS names some of it: make test TESTS=tests/storage
test: $(INSTALLED)
	$(PYTEST) $(BOTH_CORES) $(TESTS)

# each night: more examples, all pages of the documentation, and the system tests
test-all: $(VENV)/.installed-system
	$(PYTEST) $(BOTH_CORES) -m 'not soak' -rs $(TESTS)

# what may differ on another Python: numbers to the bit, files, the command
test-python: TESTS = tests/golden tests/learners/test_contract.py tests/flows/test_cli.py tests/flows/tables
test-python: test

# servers, clusters, browsers, kills; what is missing is skipped, and the summary says what to install
test-system: $(VENV)/.installed-system
	$(PYTEST) $(BOTH_CORES) -m 'system and not soak' -rs $(TESTS)

# the only target that installs packages of the system
test-packages:
	@echo "installing Debian's packages for the system tests: $(PACKAGES)"
	@test "$$(id -u)" = 0 || { echo "this needs root: sudo make test-packages"; exit 1; }
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(PACKAGES) > /dev/null

soak: $(VENV)/.installed-system
	$(PYTEST) -m soak -s $(TESTS)

check: $(INSTALLED) $(VENV)/.installed-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/lint-imports

docs: $(INSTALLED) $(VENV)/.installed-docs
	$(BIN)/properdocs build --strict --quiet
	@echo "documentation: build/site/index.html"

bench: $(INSTALLED) $(VENV)/.installed-bench
	$(BIN)/python -m tests.bench

install: $(INSTALLED)

# the path of an interpreter, for .ci/run
which:
	@echo "$(INTERPRETER)"

$(VENV)/.installed-%: pyproject.toml constraints.txt
	test -x $(BIN)/python || "$(INTERPRETER)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e ".[$*]"
	touch $@
