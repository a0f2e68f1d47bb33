PYTHON ?= python3
BIN := .venv/bin
RUN ?= runs/mine
PIP := $(BIN)/python -m pip --disable-pip-version-check
DEMO := .venv/train,corrupt,report.stamp
TEST := .venv/dev,train,corrupt,sweep,ray,report,lightning,transformers,albumentations,docs.stamp

.DEFAULT_GOAL := help
.PHONY: help demo train eval test test-timm test-isa newcomer lint format docs clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

demo: .venv/train,corrupt,report.stamp  ## train and compare on the embedded images
	$(BIN)/auglabel demo

train: .venv/train,corrupt,report.stamp  ## train on your own pictures: make train DATA=folder
	@test -n "$(DATA)" || { echo "which pictures? make train DATA=folder, with a sub-folder per class"; exit 2; }
	$(BIN)/auglabel train folder --data.root "$(DATA)" --out "$(RUN)" --resume

eval: .venv/train,corrupt,report.stamp  ## measure what make train trained
	$(BIN)/auglabel eval "$(RUN)"

test: lint  ## lint, then run the tests
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

test-timm: .venv-timm/stamp  ## the tests that need timm and torchvision, in an environment of their own
	OMP_NUM_THREADS=1 .venv-timm/bin/python -m pytest tests/with_timm

test-isa: $(TEST)  ## all tests under each of four instruction sets, as other processors would run them
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/instruction_sets.py -n 2 --dist worksteal

newcomer: $(TEST)  ## build sdist and wheel, install the wheel elsewhere, and get to a verdict with it
	$(BIN)/python scripts/newcomer.py --borrow

lint: $(TEST)  ## check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(TEST)  ## format the code and fix what can be fixed
	$(BIN)/ruff check --fix --exit-zero --quiet
	$(BIN)/ruff format

docs: .venv/docs.stamp  ## build the documentation into build/site
	rm -rf build/site
	$(BIN)/python -m sphinx -q -E -W --keep-going -c docs -d build/doctrees . build/site
	@echo "open build/site/index.html"

clean:  ## remove the environment and caches; runs/ stays
	rm -rf .venv .venv-timm build dist htmlcov .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# With a CPU build of torch, torchvision breaks the imports of other packages: it never joins them. An
# environment of its own has it, and all else by a path into .venv.
PACKAGES := -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
.venv-timm/stamp: $(TEST)
	@echo "Installing .[timm] into .venv-timm."
	@$(BIN)/python -m venv .venv-timm
	@$(BIN)/python $(PACKAGES) > "$$(.venv-timm/bin/python $(PACKAGES))/main.pth"
	@.venv-timm/bin/python -m pip --disable-pip-version-check install -qq -c constraints.txt -e '.[timm]'
	@touch $@

# The stamp's name lists the extras it stands for.
.venv/%.stamp: pyproject.toml constraints.txt
	@echo "Installing .[$*] into .venv; torch is large, so the first time takes a while."
	@$(PYTHON) -m venv .venv
	@$(PIP) install -qq --no-compile -c constraints.txt -e '.[$*]'
	@$(BIN)/python -m compileall -qq -j 0 .venv/lib || true  # on all cores, where pip compiles on one
	@touch $@ $(if $(findstring dev,$*),$(DEMO) .venv/docs.stamp)
