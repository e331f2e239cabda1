# Two commands: `make demo` shows what it does, `make test` proves it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint types tests wheel bench clean

demo: $(VENV)/.demo
	$(BIN)/coolhead demo

test: lint types tests wheel

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/pyright

tests: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist loadgroup

# The built wheel must work without the source tree.
wheel: $(VENV)/.test
	rm -rf build/wheel
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps -w build/wheel .
	$(BIN)/python tests/check_wheel.py build/wheel/*.whl

bench: $(VENV)/.test
	$(BIN)/python benchmarks/against_peers.py

$(VENV)/.demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e .
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e '.[test]'
	touch $@

clean:
	rm -rf $(VENV) build dist
