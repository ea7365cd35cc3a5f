# Every target depends on the environment's stamp, so there is no set-up step: `make run` and `make test` work on a fresh clone.
.DEFAULT_GOAL := help
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime-stamp
DEV := $(VENV)/.dev-stamp
BENCH := $(VENV)/.bench-stamp
FUZZ := $(VENV)/.fuzz-stamp
SERVICES := $(VENV)/.services-stamp
COMPILED := $(VENV)/.compiled-stamp
CYTHON := $(shell find gatewayfilter -name "*.pyx" -o -name "*.pxd")
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
ARGS ?=
# The tests run in one process more than there are cores: a third of their time is waiting. Each file stays in one process, so that what
# its tests share is made once; ARGS="-n 0" uses one process. Of the slow ones, files that start the filter begin (tests/conftest.py).
CORES := -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) --dist loadfile

.PHONY: help env run demo test test-all test-services check format lint types contracts bench train lock wheel clean

help: ## List what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

$(VENV)/bin/python:
	@python=$$(scripts/find-python) && echo "Making $(VENV) with $$python" && "$$python" -m venv --clear $(VENV)

# The checkout is installed in place; --no-build-isolation because the build back end is in the lock.
$(RUNTIME): requirements/runtime.lock pyproject.toml | $(VENV)/bin/python
	@echo "Installing requirements/runtime.lock"
	@$(PIP) install --require-hashes -r requirements/runtime.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q gatewayfilter
	@touch $@

# hatch_build.py has run above, but pip hides what it says; here it says what could not be compiled, and compiles what has changed.
# Without a compiler there is no stamp: it looks for one again the next time.
$(COMPILED): hatch_build.py $(CYTHON) $(RUNTIME)
	@if $(BIN)/python hatch_build.py; then touch $@; fi

$(DEV): requirements/dev.lock $(RUNTIME) | $(COMPILED)
	@echo "Installing requirements/dev.lock"
	@$(PIP) install --require-hashes -r requirements/dev.lock
	@touch $@

$(BENCH): requirements/bench.lock $(DEV)
	@echo "Installing requirements/bench.lock"
	@$(PIP) install --require-hashes -r requirements/bench.lock
	@touch $@

$(FUZZ): requirements/fuzz.lock $(DEV)
	@echo "Installing requirements/fuzz.lock"
	@$(PIP) install --require-hashes -r requirements/fuzz.lock
	@touch $@

$(SERVICES): requirements/services.lock scripts/services/fetch scripts/services/kafka.xml scripts/services/spark.xml $(DEV)
	@echo "Installing requirements/services.lock"
	@$(PIP) install --require-hashes -r requirements/services.lock
	@scripts/services/fetch
	@touch $@

.PHONY: services test-services
services: $(SERVICES) ## Fetch Kafka and Spark, for `make test-services` (needs Java 17 and mvn)

test-services: $(SERVICES) ## Run the tests against real servers: Kafka and Spark, killed and started again
	@$(BIN)/python -m pytest -m services -p no:randomly -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

env: $(COMPILED) ## Make .venv with .venv/bin/gatewayfilter and nothing else

run: $(COMPILED) ## Start the filter on 127.0.0.1:8080 (ARGS="--listen HOST:PORT")
	@$(BIN)/gatewayfilter run $(ARGS)

demo: $(COMPILED) ## See it work with no internet: a small local site, a client, each station's answer
	@$(BIN)/python scripts/demo/demo.py $(ARGS)

# Bytecode is kept: without it each test process compiles the tests, and each program that they start compiles the product.
test test-all test-services: export PYTHONDONTWRITEBYTECODE :=

test: $(DEV) ## Run the tests that need no real services and are quick (ARGS="tests/engine -k overlay"; test-all runs all)
	@$(BIN)/python -m pytest -m "not real and not slow and not services and not packages" $(CORES) $(ARGS)

test-all: $(DEV) ## Run all tests: network namespaces and browsers too, where the machine lets them
	@$(BIN)/python -m pytest -m "not real and not slow and not services and not packages" $(CORES) $(ARGS) || [ $$? = 5 ]
	@$(BIN)/python -m pytest -m "(real or slow) and not services and not packages" $(CORES) --no-loadscope-reorder $(ARGS) || [ $$? = 5 ]

check: format-check lint types contracts test-all ## All that a change must pass

.PHONY: format-check
format-check: $(DEV)
	@$(BIN)/ruff format --check --quiet . || { echo "Run 'make format'."; exit 1; }

format: $(DEV) ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix --quiet . || true

lint: $(DEV) ## Lint
	@$(BIN)/ruff check .

types: $(DEV) ## Check the types (mypy strict)
	@$(BIN)/mypy

contracts: $(DEV) ## Check which room may import which
	@$(BIN)/lint-imports --no-cache

bench: $(BENCH) ## Run the benchmarks (ARGS="tables adblock …" to choose)
	@$(BIN)/python scripts/bench/run.py $(ARGS)

train: $(BENCH) ## Train the bundled text model (DATA=FOLDER with the real texts)
	@$(BIN)/python scripts/train_text_model.py $(DATA) --write $(ARGS)
	@$(BIN)/python scripts/settle_text_model.py $(DATA) --write

.PHONY: fuzz
fuzz: $(FUZZ) ## Fuzz all readers of hostile input (ARGS="page -max_total_time=60" chooses)
	@PYTHONPATH=. $(BIN)/python tests/fuzz/fuzz.py $(ARGS)

.PHONY: chaos
chaos: $(DEV) ## Kill processes of a running filter, and take disk, database, network and more away (ARGS="--kills 200 --seed 7")
	@PYTHONPATH=. $(BIN)/python tests/e2e/chaos.py $(ARGS)

.PHONY: soak
soak: $(DEV) ## Browse through the filter for half an hour, then overload it (ARGS="--minutes 5 --plot soak.svg")
	@PYTHONPATH=. $(BIN)/python tests/e2e/soak.py $(ARGS)

.PHONY: mutants
mutants: $(DEV) ## Try random faults against the tests of their room (ARGS="engine --sample 40 --minutes 15")
	@PYTHONPATH=. $(BIN)/python scripts/mutants.py $(ARGS)

.PHONY: attack
attack: $(DEV) ## Attack the running filter with a client that may send anything (ARGS="--minutes 10 --seed 7")
	@PYTHONPATH=. $(BIN)/python tests/security/attack.py $(ARGS)

lock: ## Make the hashed requirement files anew (needs uv)
	@scripts/lock

wheel: $(RUNTIME) ## Build the wheel into dist/
	@$(BIN)/python -m hatchling build -t wheel

.PHONY: dist deb packages test-packages
dist: $(RUNTIME) ## Build the source archive, and from it the wheel, into dist/
	@scripts/packages/build-dist $(BIN)/python

deb: dist ## Build the Debian package into dist/ (needs dpkg-deb)
	@scripts/packages/build-deb $(BIN)/python

packages: dist deb ## Build the packages, and install them where `make test-packages` uses them
	@scripts/packages/make-installed dist .cache/installed
	@[ "$$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null || scripts/packages/make-bare-debian .cache/bare-debian \
	    || echo "debootstrap can make no bare Debian here: the tests of the Debian package are left out"

# `PACKAGES=` uses those that were built before.
PACKAGES ?= packages
test-packages: $(PACKAGES) $(DEV) ## Install the packages and use them (the Debian one as root, in a bare Debian by debootstrap)
	@$(BIN)/python -m pytest tests/packages -m packages -p no:randomly $(ARGS)

.PHONY: check-image
check-image: $(DEV) ## Build the container image by buildah, and run it confined (needs root, buildah, debootstrap; not part of check)
	@scripts/packages/make-bare-debian .cache/bare-debian
	@$(BIN)/python scripts/packages/check_image.py .cache/bare-debian .cache/images

.PHONY: sbom
sbom: $(RUNTIME) ## Print what the program consists of as CycloneDX, with hashes and licences (ARGS=--licences: a list)
	@$(BIN)/python scripts/packages/sbom.py $(ARGS)

.PHONY: audit
audit: $(RUNTIME) ## Compare the locked packages with advisories (ARGS=PyPI.zip: a copy of OSV's database; no network is used)
	@$(BIN)/python scripts/packages/audit.py $(ARGS)

clean: ## Remove what was made, but not your state folder
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find gatewayfilter -name "*.so" -delete
