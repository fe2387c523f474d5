# Everything runs in .venv, which the first target that needs it creates.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SHOWN := $(PYTHON) scripts/shown.py
PIP := $(BIN)/pip install --disable-pip-version-check --progress-bar off
RUNTIME := $(VENV)/.runtime
ALL := $(VENV)/.all
ZIG := $(VENV)/.zig

.PHONY: setup run test test-ci test-all select timing test-pythons test-hosts test-aarch64 reliability lint format bench docs notebooks firmware library vectors vectors-check coverage \
  mutate wheel wheel-own wheel-check clean

setup: $(ALL)

$(RUNTIME): pyproject.toml
	@$(SHOWN) "making $(VENV)" $(PYTHON) -m venv $(VENV)
	@$(SHOWN) "installing bhemu and what it runs with, once" $(PIP) -e '.[compile]'
	@$(SHOWN) "compiling its bytecode" $(BIN)/python -m compileall -q -j 0 bhemu
	touch $@

$(ALL): $(RUNTIME)
	@$(SHOWN) "installing what tests and documents need, once" $(PIP) -e '.[test,build,dev,hosts,docs,sweep,mcp]'
	touch $@

$(ZIG): $(RUNTIME)
	$(PIP) -q ziglang==0.17.0
	touch $@

run: $(RUNTIME)
	$(BIN)/bhemu run elfs/add1/PROGRAM.toml

# The tests of what differs from main, at most four minutes (docs/tests.md)
test: setup
	$(BIN)/pytest -n 2 --selected

# What .ci/run runs
test-ci: setup
	$(BIN)/pytest -n 2

# Measures which test executes what and chooses those of `make test`; ROOMS="tests/cli tests/noc": of these
select: setup
	nice $(BIN)/python scripts/select_tests.py $(ROOMS)

test-all: setup
	BHEMU_LONG=1 $(BIN)/pytest -n 2
	$(MAKE) test-aarch64
	$(MAKE) reliability

# PYTHONS="python3.12 /path/to/python3.13": those instead of the supported ones at hand
test-pythons: $(RUNTIME)
	$(BIN)/python scripts/test_pythons.py $(PYTHONS)

# Stock ttnn from its registry drives the chip; what it needs is kept in .hosts (about 900 MB).
test-hosts: setup
	$(BIN)/python scripts/test_hosts.py

# Golden programs on the code for AArch64, in a process that qemu emulates; what it needs is kept in .arm (about 600 MB).
test-aarch64: setup
	$(BIN)/python scripts/test_aarch64.py

reliability: setup
	nice $(BIN)/python scripts/hostile_campaign.py --workers 2 --write

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# TTSIM=libttsim.so TTSIM_FLAGS="-O2": beside that golden model
bench: $(RUNTIME)
	$(BIN)/python scripts/bench_levels.py $(if $(TTSIM),--ttsim $(TTSIM) --flags "$(TTSIM_FLAGS)")

# Repeats published probes of cards in modelled time, for the tables of docs/timing.md
timing: setup
	$(BIN)/python scripts/make_timing.py

# The documentation site, in out/site
docs: setup
	$(BIN)/mkdocs build --strict

notebooks: setup
	$(BIN)/python scripts/run_notebooks.py

firmware: setup
	$(BIN)/python firmware/build.py

# LIBTTSIM=path of a libttsim.so of Blackhole, TTSIM_VERSION=its version
vectors: setup
	$(BIN)/python scripts/make_vectors.py --ttsim "$(LIBTTSIM)" $(if $(TTSIM_VERSION),--version $(TTSIM_VERSION))
	$(BIN)/python scripts/make_coverage.py

vectors-check: setup
	$(BIN)/python scripts/make_vectors.py --ttsim "$(LIBTTSIM)" --check

coverage: setup
	$(BIN)/python scripts/make_coverage.py

mutate: setup
	nice $(BIN)/python scripts/mutate.py --write

# The wheel carries the machine code of every entry (docs/internals.md); the checkout does not.
# LEVEL=x86-64-v3: for those processors only (bhemu/jit/host.py, CARRIED)
wheel: $(ZIG)
	rm -rf build dist bhemu/data/*.code bhemu/data/*.so
	$(BIN)/python -c 'from bhemu.hosts import simulator; simulator.library()'
	$(BIN)/python scripts/make_objects.py bhemu/data $(if $(LEVEL),--level $(LEVEL))
	$(BIN)/pip wheel -q --disable-pip-version-check --no-deps -w dist .; \
	  status=$$?; rm -f bhemu/data/*.code; exit $$status

# The library that hosts load in place of a card (docs/hosts.md); made anew from its sources
library: setup
	rm -f bhemu/data/*.so
	$(BIN)/python -c 'from bhemu.hosts import simulator; simulator.library()'

# With the code for this machine, which is all that can be tried here.
wheel-own: $(RUNTIME)
	$(MAKE) wheel LEVEL=$$($(BIN)/python -c 'from bhemu.jit import host; print(host.level())')

wheel-check: wheel-own
	$(BIN)/python scripts/check_wheel.py

clean:
	rm -rf $(VENV) build dist out *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
