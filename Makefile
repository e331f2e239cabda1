# Two commands: `make demo` runs an experiment, `make test` everything that CI runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTHONS ?= 3.11 3.12 3.13
# Tests that need neither torch, nor Dask, nor a peer library.
OLDEST ?= tests/numerics tests/calibrators tests/archive tests/persist tests/shift \
  tests/monitor tests/figures tests/metrics tests/new_domain \
  tests/datasets/test_simulated.py \
  --ignore tests/calibrators/test_tables.py \
  --ignore tests/metrics/test_metrics_errors.py \
  --ignore tests/calibrators/test_wrapper_tables.py \
  --ignore tests/persist/test_forged_calibrators.py
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-long dev lint types tests wheel docs look release \
  test-pythons test-oldest bench clean

demo: $(VENV)/.demo
	$(BIN)/coolhead demo

test: lint types tests wheel

# Everything that contributors need, and the hooks that run before each commit.
dev: $(VENV)/.test
	$(BIN)/pre-commit install

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/pyright

tests: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist loadgroup

# Before a release: thirty kills of every command, every fault everywhere, and the page
# that reports them.
test-long: $(VENV)/.test
	mkdir -p build
	rm -f build/faults.jsonl
	COOLHEAD_FAULTS=$(CURDIR)/build/faults.jsonl \
	  $(BIN)/python -m pytest -m "long or not long" tests/faults tests/dask_cluster
	$(BIN)/python benchmarks/random_fits.py 5000 > build/random_fits.txt
	nice -n 19 $(BIN)/python benchmarks/soak.py > build/soak.txt
	$(BIN)/python scripts/write_faults_page.py build/faults.jsonl \
	  --random-fits build/random_fits.txt --soak build/soak.txt

# The built wheel must work without the source tree.
wheel: $(VENV)/.test
	rm -rf build/wheel
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps -w build/wheel .
	$(BIN)/python tests/check_wheel.py build/wheel/*.whl

# The site, into build/docs. The first time the gallery runs, later only what changed.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d build/doctrees docs build/docs
	$(BIN)/python scripts/check_links.py build/docs
	@echo build/docs/index.html

# The built site in a real browser; pictures of its pages in build/screenshots.
look: docs $(VENV)/.test
	$(BIN)/python scripts/look_at_site.py build/docs build/screenshots

# Source distribution and wheel of the present commit, built twice, compared, checked.
release: $(VENV)/.release
	$(BIN)/python scripts/build_release.py dist
	$(BIN)/python tests/check_wheel.py dist/*.whl

# Every Python that is promised, each in a virtual environment of its own.
test-pythons:
	for version in $(PYTHONS); do \
	  $(MAKE) tests PYTHON=python$$version VENV=.venv-$$version || exit 1; \
	done

# The lowest version of every dependency that pyproject.toml allows, newest of the rest.
# Deprecations of such libraries among each other are ignored.
test-oldest:
	$(PYTHON) -m venv .venv-oldest
	$(PYTHON) scripts/oldest_versions.py > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check \
	  -c .venv-oldest/constraints.txt -e '.[lab]' pytest hypothesis pandas
	.venv-oldest/bin/python -m pytest -W default::DeprecationWarning \
	  -W "ignore:Setting penalty=None:UserWarning" $(OLDEST)

bench: $(VENV)/.test
	$(BIN)/python benchmarks/against_peers.py

# Dependency groups need pip 25.1; the venv of Python 3.11 brings an older one.
$(VENV)/.demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -e '.[lab]'
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) 'pip>=25.1'
	$(INSTALL) -e '.[all,backbone]' --group dev
	touch $@

$(VENV)/.docs: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) 'pip>=25.1'
	$(INSTALL) -e '.[lab,torch,onnx,dask,serve,mlflow]' --group docs
	touch $@

$(VENV)/.release: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) 'pip>=25.1'
	$(INSTALL) -e . --group release
	touch $@

clean:
	rm -rf $(VENV) .venv-* build dist docs/_examples docs/_static/made docs/gallery docs/reference
