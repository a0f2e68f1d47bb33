PYTHON ?= python3
BIN := .venv/bin
RUN ?= runs/mine
PIP := $(BIN)/python -m pip --disable-pip-version-check
DEMO := .venv/train,corrupt.stamp

.DEFAULT_GOAL := help
.PHONY: help demo train eval test lint format clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-7s %s\n", $$1, $$2 }' Makefile

demo: .venv/train,corrupt.stamp  ## train and compare on the embedded images
	$(BIN)/auglabel demo

train: .venv/train,corrupt.stamp  ## train on your own pictures: make train DATA=folder
	@test -n "$(DATA)" || { echo "which pictures? make train DATA=folder, with a sub-folder per class"; exit 2; }
	$(BIN)/auglabel train folder --data.root "$(DATA)" --out "$(RUN)" --resume

eval: .venv/train,corrupt.stamp  ## measure what make train trained
	$(BIN)/auglabel eval "$(RUN)"

test: lint  ## lint, then run the tests
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

lint: .venv/dev,train,corrupt,sweep,ray,report.stamp  ## check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: .venv/dev,train,corrupt,sweep,ray,report.stamp  ## format the code and fix what can be fixed
	$(BIN)/ruff check --fix --exit-zero --quiet
	$(BIN)/ruff format

clean:  ## remove the environment and caches; runs/ stays
	rm -rf .venv build dist htmlcov .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# The stamp's name lists the extras it stands for.
.venv/%.stamp: pyproject.toml constraints.txt
	@echo "Installing .[$*] into .venv; torch is large, so the first time takes a while."
	@$(PYTHON) -m venv .venv
	@$(PIP) install -qq -c constraints.txt -e '.[$*]'
	@touch $@ $(if $(findstring dev,$*),$(DEMO))
