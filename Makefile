.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test bench setup format clean lint sanitize lock
export CXX  # make's own default is g++; the environment may name another

PYTHON       ?= python3
PYTEST_FLAGS ?= -n auto
venv         := .venv/bin
in_venv      := PATH="$(CURDIR)/$(venv):$$PATH"
cpp           = $(shell find emu tests \( -name '*.hpp' -o -name '*.cpp' \) 2>/dev/null)

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

demo: setup ## set up, then compare what the CPU models do
	@$(venv)/emu compare

test: setup lint sanitize ## set up, then run everything that must pass
	$(venv)/python -m pytest $(PYTEST_FLAGS)

bench: setup ## measure the speed of the emulator
	@$(venv)/emu bench

setup: ## bring .venv and the compiled core up to date (an instant when they are)
	@PYTHON="$(PYTHON)" tools/setup.sh

format: setup ## format C++ and Python in place
	$(venv)/clang-format -i $(cpp)
	$(venv)/ruff check --fix-only --quiet .
	$(venv)/ruff format .

lint: setup ## linters, types and formatting only
	$(venv)/ruff check .
	$(venv)/ruff format --check .
	$(venv)/mypy
	$(venv)/clang-format --dry-run -Werror $(cpp)

sanitize: setup ## the C++ core under the address and undefined-behaviour sanitizers
	@$(in_venv) cmake -S emu -B build/sanitize -G Ninja -DEMU_SANITIZE=ON >/dev/null
	@$(in_venv) cmake --build build/sanitize
	build/sanitize/emu_check

lock: setup ## write requirements.lock anew from pyproject.toml (needs network)
	$(venv)/pip install --quiet uv
	$(venv)/uv pip compile pyproject.toml --group dev --universal --python-version 3.10 --fork-strategy fewest \
	  --upgrade --no-emit-index-url --custom-compile-command "make lock" --quiet --output-file requirements.lock

clean: ## remove everything that make has made, .venv included
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find emu tests -name __pycache__ -type d -prune -exec rm -rf {} +
