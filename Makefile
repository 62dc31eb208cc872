# `make run` is all that is needed; PORT, VAULT_PATH, ANTHROPIC_API_KEY and the others come from the environment.

python := .venv/bin/python

.PHONY: setup run signin test test-all test-setup lint bench soak

setup:
	@tools/install requirements.txt

run: setup
	@exec $(python) manage.py up

signin: setup
	@exec $(python) manage.py signin

test-setup: setup
	@tools/install requirements-dev.txt
	@tools/install-for-tests

test: test-setup
	@tools/test

test-all: test-setup
	@tools/test all

lint: test-setup
	@tools/lint

bench: test-setup
	@exec $(python) -m tests.bench $(ARGS)

soak: test-setup
	@exec $(python) -m tests.soak $(ARGS)
