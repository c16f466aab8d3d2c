# Every target makes its own .venv from nothing: a Python 3.11 or newer is all that is needed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# `auto` is a process for each core, for the whole suite one more (tests/conftest.py); `pytest` alone runs in one
# process, for debuggers.
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses=4 --dist=worksteal

# uv does not read pip's settings; the ones that pip takes from the environment are handed on.
ifneq ($(PIP_FIND_LINKS),)
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
endif
test test-quick test-wheel test-lowest check speed bench: export HF_HUB_OFFLINE = 1

# uv leaves compiling to the first import; where that may not be kept, each start takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo docs test speed test-quick test-wheel test-lowest test-integrations check bench bench-peers clean

demo: $(VENV)/.core
	@$(BIN)/lightrag-jsonl demo

test: $(VENV)/.dev
	@$(PYTEST)

# For the time between: what is marked slow is left out.
test-quick: $(VENV)/.dev
	@$(PYTEST) -m "not slow"

# The documentation, as a site in `site/`.
docs: $(VENV)/.dev
	@$(BIN)/mkdocs build --strict --quiet -f docs/site/mkdocs.yml

# The suite against the built wheel, and with the oldest dependencies allowed; from nothing, minutes.
test-wheel test-lowest: test-%: $(VENV)/.dev
	@$(BIN)/python -m tests.packaging.installed $*

check: $(VENV)/.dev
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(call silent,$(BIN)/lint-imports --no-logo)
	@$(call silent,$(PYTEST))

# CPU time of fifty chunks and twenty questions beside the commit before: fails from twice as much on.
speed: $(VENV)/.dev
	@$(BIN)/python -m benchmarks.compare --most 2 --run "texts --characters 5000 --modes mix --rounds 2"

# `benchmarks.compare` is left out: it needs another version.
bench: $(VENV)/.dev
	@set -e; for script in $$(grep -l __main__ benchmarks/*.py | grep -v compare); do \
		$(BIN)/python -m "benchmarks.$$(basename "$$script" .py)"; done

# The retrievers with the programs that they are for; otherwise these tests are skipped.
test-integrations: $(VENV)/.dev
	@$(call install,langchain-core llama-index-core haystack-ai)
	@$(BIN)/python -m pytest tests/integrations

# Beside LightRAG, nano-graphrag and others, each from PyPI in its own environment in the user's cache.
bench-peers: $(VENV)/.dev
	@$(BIN)/python -m benchmarks.referee --docs $(ARGS)

clean:
	rm -rf $(VENV)

# Run a command and show what it printed only where it failed.
silent = output=$$($(1) 2>&1) || { printf '%s\n' "$$output"; exit 1; }

# uv where it can be had, since it is quicker; pip where uv fails (pip knows more indexes).
install = $(BIN)/python -m uv pip install --quiet --python $(BIN)/python -c constraints.txt $(1) \
	|| $(BIN)/python -m pip install --quiet -c constraints.txt $(1)

$(VENV)/.made:
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet uv || true
	@touch $@

$(VENV)/.core: $(VENV)/.made pyproject.toml constraints.txt
	@$(call install,-e .)
	@touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml constraints.txt
	@$(call install,-e '.[dev]')
	@touch $(VENV)/.core $@
