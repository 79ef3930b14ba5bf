# make run    set everything up, run the pipeline, print the leaderboard     (EXPERIMENT=smoke, DATA=FOLDER, CORES=1,
#             OVERRIDES="llm=openai llm.endpoint.model=...": any of Hydra's)
# make test   set everything up, check and test everything
# make check  lint, types, import layers, snakefmt, snakemake --lint
# make retry  try the failed questions of the last run again
# make setup-flag  what embedder=bge_m3 and reranker=bge_reranker need: FlagEmbedding and torch
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup setup-flag compose run retry test check lock clean

PYTHON ?= python3
CORES ?= 4
VENV := .venv
READY := $(VENV)/.ready
READY_FLAG := $(VENV)/.ready-flag
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

help:
	@sed -n 's/^# //p' Makefile | head -6

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON="; exit 1; }
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@echo "installing pinned packages into $(VENV) (about a minute and 1.6 GB)"
	pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $(READY)

# torch's build depends on the machine and stands in no lock: PyPI's for Linux is made for CUDA and takes gigabytes; one for
# CPUs alone is what pip takes with PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu.
$(READY_FLAG): $(READY) requirements-flag.lock
	@echo "installing FlagEmbedding and torch into $(VENV) (half a minute and 1 GB with a build of torch for CPUs)"
	pip install --quiet --disable-pip-version-check torch==2.13.0
	pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-flag.lock
	touch $(READY_FLAG)

setup: $(READY)

setup-flag: $(READY_FLAG)

compose: $(READY)
ifneq ($(EXPERIMENT)$(DATA)$(OVERRIDES),)
	arena compose experiment=$(or $(EXPERIMENT),demo) $(if $(DATA),dataset=folder "dataset.path=\"$${DATA//\"/\\\"}\"") $(OVERRIDES)
endif

run: compose
	snakemake --cores $(CORES)
	arena leaderboard

retry: $(READY)
	for stage in $$(arena failed); do dvc repro --force --single-item --no-run-cache $$stage; done
	snakemake --cores $(CORES)
	arena leaderboard

check: $(READY)
	ruff check .
	ruff format --check .
	mypy
	lint-imports
	snakefmt --check Snakefile workflow
	snakemake --lint

test: $(READY)
	$(MAKE) --jobs 2 --output-sync check setup-flag
	pytest -n 3 --dist loadfile --no-loadscope-reorder --cov --cov-report=term:skip-covered

# New complete locks, for every platform, with hashes (needs `pip install uv`); the second is held to the first.
LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --override requirements.overrides
lock:
	$(LOCK) requirements.in -o requirements.lock
	$(LOCK) --constraint requirements.lock requirements-flag.in -o requirements-flag.lock

clean:
	rm -rf data/*.parquet data/index.parts data/sample data/retrieved data/calibrated data/routers data/resolved data/runs data/judged results/*.parquet results/*.csv logs .snakemake
