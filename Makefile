# Two commands: `make run` serves, `make test` tests. Both bring what they need and say what they installed.
# `make help` lists the rest. Settings: PORT=, DATA=, and every FENCEPOST_* variable passes through.

SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
TESTS ?=
# Two test processes for each core: most tests wait for a server, a disk or a clock.
WORKERS ?= $(shell echo $$(( 2 * $$(getconf _NPROCESSORS_ONLN) )))

.DEFAULT_GOAL := help
.PHONY: help run test test-long check lint format types imports docs docs-serve reference bench lock wheel clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' Makefile | awk -F '|' '{ printf "  %-16s %s\n", $$1, $$2 }'

run: ## install what is pinned, migrate, serve on http://127.0.0.1:8000 (PORT=, DATA=)
	@scripts/venv run
	@$(if $(PORT),FENCEPOST_BIND="127.0.0.1:$(PORT)") $(if $(DATA),FENCEPOST_DATA_DIR="$(DATA)") \
	    exec $(BIN)/fencepost-server serve

test: ## every test but the long ones: browser and PostgreSQL included, nothing skipped
	@scripts/venv dev
	@scripts/need chromium postgresql nginx caddy prometheus systemd pgbouncer redis-server strace
	@scripts/mcp-clients
	@scripts/axe
	@$(BIN)/python -m pytest -m "not long" -n $(WORKERS) --dist loadfile $(TESTS)

test-long: ## the long suites: crash, fault and load runs
	@scripts/venv dev
	@scripts/need chromium postgresql pgbouncer redis-server strace
	@$(BIN)/python -m pytest -m long --timeout 1200 $(TESTS)

check: lint types imports docs test ## what CI runs: lint, format, types, import rules, docs, tests

lint: ## ruff: rules, bans and format
	@scripts/venv dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: ## let ruff put the code in shape
	@scripts/venv dev
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: ## mypy, strict
	@scripts/venv dev
	@$(BIN)/mypy $(wildcard app wsgi.py client/src client/tests client/examples migrations bench tests)

imports: ## import-linter: who may know whom
	@scripts/venv dev
	@$(BIN)/lint-imports --no-logo

docs: ## build the documentation into site/, warnings are errors
	@scripts/venv dev
	@$(BIN)/mkdocs build --quiet --strict --site-dir site

reference: ## write the pages of docs/ and the examples that are made from the code
	@scripts/venv dev
	@$(BIN)/fencepost-server settings --markdown >docs/settings.md
	@$(BIN)/python -m tests.docs.reference
	@$(BIN)/python -m tests.docs.examples

docs-serve: ## read the documentation on http://127.0.0.1:8001 while writing it
	@scripts/venv dev
	@exec $(BIN)/mkdocs serve --dev-addr 127.0.0.1:8001

bench: ## measure against what people use instead; results go to docs/performance.md
	@scripts/venv dev
	@scripts/need wrk redis-server postgresql etcd
	@$(BIN)/python -m bench
	@$(BIN)/python -m bench.rivals

lock: ## pin what pyproject.toml asks for, with hashes, in requirements/ (UPGRADE=1 takes newer releases)
	@scripts/venv dev
	@scripts/lock $(if $(UPGRADE),--upgrade)

wheel: ## build the server's wheel into dist/
	@scripts/venv dev
	@$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

clean: ## remove what make made; data/ stays
	rm -rf $(VENV) .venvs tests/mcp/node/node_modules tests/browser/node/node_modules build client/build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
