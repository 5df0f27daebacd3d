# Four words: check (seconds), test (everything), demo, bench. Each does its own set-up.
# PYTHON=/path/to/python chooses the interpreter; NODE=0 leaves out the tests that need root and a kubelet.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help check pure test demo bench oracle lock go-builds packages gpu

VENV := .venv
BIN := $(VENV)/bin
DEMO_VENV := build/demo-venv
NODE ?= 1
FULL ?= 0
GPU ?= 0
DJANGO_TESTS := tests/portal tests/gpuinventory tests/claims
PROPERTIES := tests/dra tests/claims tests/nodedriver tests/simulator
LONG := tests/claims/test_manifests_corpus.py tests/cluster/test_corpus_fit.py tests/cluster/test_corpus_bytes.py tests/nodedriver/test_crashes.py tests/nodedriver/test_faults.py tests/nodedriver/test_hangs.py tests/nodedriver/test_maintenance.py tests/nodedriver/test_shares.py tests/nodedriver/test_walks.py
SERVERS := cluster or node or browser or postgres or redis
SERVICES := $(SERVERS) or programs
export PORTICO_NODE := $(NODE)
unexport PYTHONDONTWRITEBYTECODE # or every program that starts compiles all it imports anew

help:
	@echo "make demo    the portal on a simulated cluster with two real node drivers; prints one address (SCENARIO=mixed: another fleet, CLUSTER=real: a Kubernetes of its own, KUBECONFIG=file: a cluster of yours)"
	@echo "make test    everything: installs and starts what the tests need (FULL=1: what takes longer too, NODE=0: no kubelet, GPU=1: the contract with NVML on a real card too, SAMPLES=folder: objects to read)"
	@echo "make check   the quick part of test: format, lint, types, import contracts, pure tests"
	@echo "make oracle CASES=n SEED=s    our allocation and selectors against the scheduler's own libraries, on random cases"
	@echo "make bench NAME=echo|cel|allocate|fleet|memory|resync|preview|demo|prepare|node    one benchmark, against a peer or a floor of the same run"

$(VENV)/.installed: requirements/dev.txt
	@python=$$(scripts/find-python); echo "portico: setting up $(VENV) with $$python" >&2; \
	  [ -x $(BIN)/python ] || "$$python" -m venv $(VENV); \
	  $(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

$(DEMO_VENV)/.installed: requirements/demo.txt
	@python=$$(scripts/find-python); echo "portico: setting up $(DEMO_VENV) with $$python" >&2; mkdir -p build; \
	  [ -x $(DEMO_VENV)/bin/python ] || "$$python" -m venv $(DEMO_VENV); \
	  $(DEMO_VENV)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/demo.txt
	@touch $@

check: $(VENV)/.installed
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -m "not ($(SERVICES))"

packages:
	@scripts/system-packages "make test" runc busybox-static iproute2 openssl postgresql redis-server chromium fonts-dejavu-core git

go-builds: $(VENV)/.installed
	@scripts/check-go
	$(BIN)/python -m tests.cluster.build --all

gpu: $(VENV)/.installed
	@$(BIN)/python -m tests.realgpu
	PORTICO_GPU=1 $(BIN)/python -m pytest -q tests/nodedriver/test_contract.py

test: $(if $(filter 1,$(GPU)),gpu) packages go-builds check
	@scripts/side-by-side '$(BIN)/python -m pytest -m "$(SERVERS)" --durations=15' \
	  '$(BIN)/python -m pytest -q -m "programs and not ($(SERVERS))" --durations=15'
	$(BIN)/python -m tests.services postgres -- $(BIN)/python -m pytest -q $(DJANGO_TESTS) -m "not (browser or programs)"
	@if [ "$(FULL)" = 1 ]; then set -x; \
	  $(BIN)/python -m pytest -q -m "not ($(SERVICES))" --hypothesis-profile=long $(PROPERTIES); \
	  $(BIN)/python -m tests.oracle --cases 20000; \
	  PORTICO_FULL=1 $(BIN)/python -m pytest -q $(LONG); fi

# A KUBECONFIG that only stands in the environment is nobody's wish: the demo would write into that cluster.
CLUSTER ?= simulated
SCENARIO ?= article
OWN_CLUSTER := $(if $(findstring command,$(origin KUBECONFIG)),--kubeconfig "$(KUBECONFIG)")

demo: $(DEMO_VENV)/.installed
ifeq ($(CLUSTER),real)
	@scripts/check-go
	@scripts/system-packages "make demo CLUSTER=real" runc busybox-static iproute2 openssl redis-server
	@exec $(DEMO_VENV)/bin/python -m tests.cluster.demo
else
	@exec $(DEMO_VENV)/bin/python -m simulator.demo --scenario "$(SCENARIO)" $(OWN_CLUSTER)
endif

bench: $(VENV)/.installed
	@[ -n "$(NAME)" ] || { echo "portico: which one? make bench NAME=echo" >&2; exit 2; }
	@exec $(BIN)/python -m benchmarks $(NAME)

CASES ?= 2000
oracle: $(VENV)/.installed
	@scripts/check-go
	@exec $(BIN)/python -m tests.oracle --cases $(CASES) $(if $(SEED),--seed $(SEED))

# Lock files carry versions and hashes, and no download addresses.
lock: $(VENV)/.installed
	@$(BIN)/python -m pip install -q --disable-pip-version-check uv
	env -u PIP_FIND_LINKS $(BIN)/python scripts/lock.py
