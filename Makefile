# make help says what there is. Each target makes .venv by itself, once.
PYTHON ?= python3
export PYTHON

# A file of tests stays in one process, as what its tests share does.
TEST_PROCESSES ?= 2

BIN := .venv/bin
SHELL_SCRIPTS = $(shell find recipes benchmarks -name '*.sh') .ci/run

.PHONY: help venv demo demo-stock table3 test test-fast lint format clean

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' Makefile
	@echo "PYTHON=python3.12 make venv  uses another Python; recipes/setup_environment.sh --help tells the rest"

venv: ## make the environment in .venv, once
	@bash recipes/setup_environment.sh

demo: venv ## the main job on real text: fetch, tokenise, BPE, train, average, decode, score
	bash recipes/demo/run.sh

demo-stock: venv ## the same with stock fairseq, and both side by side
	bash recipes/demo/run.sh --stock

table3: venv ## every row of Table 3 made small, on the demo's data (hours; the same call resumes it)
	bash recipes/table3/run.sh

test: lint ## the whole suite: lint, types, then tests, fast ones first, in two processes
	$(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --dist loadfile

test-fast: venv ## the tests that take seconds
	$(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --dist loadfile -m "not slow and not recipes"

lint: venv ## ruff, mypy, shellcheck
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/shellcheck $(SHELL_SCRIPTS)

format: venv ## lay out the Python files
	$(BIN)/ruff check --fix --exit-zero .
	$(BIN)/ruff format .

clean: ## remove what tools left behind; .venv and runs stay
	rm -rf build dist t2017_plugin.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.venv/*' -not -path './runs/*' -prune -exec rm -rf {} +
