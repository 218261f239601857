# make demo: the main job, end to end. make test: everything that must be true.
# Both make their own .venv, with torch as a CPU build where there is no NVIDIA GPU.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
STAMP := $(VENV)/.installed
TORCH := $(shell sed -n 's/^torch==/torch==/p' constraints.txt)
CPU_INDEX := $(if $(SGC_TORCH_INDEX),--index-url $(SGC_TORCH_INDEX))

# Collecting tests without kept bytecode takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-pythons test-slow test-storms test-clients test-ray test-browser lint docs bench clean

demo: $(STAMP)
	$(BIN)/python -P tools/demo.py

test: $(STAMP)
	SGC_KERNEL_SETS=all $(BIN)/sgc doctor --no-measure
	$(BIN)/pytest -m "not slow" -n auto --maxprocesses 8 --dist worksteal
	$(MAKE) --no-print-directory lint

# What needs no torch, on every other Python of pyproject.toml that is found (PATH, pyenv).
test-pythons: $(STAMP)
	$(BIN)/python -P tools/test_pythons.py

test-slow: $(STAMP)
	$(BIN)/pytest -m slow
	EXAMPLES=all $(BIN)/pytest -m "not slow" $$(grep -rl --include="*.py" -E "(property_tests|control_flow) import" tests)

# Clients nobody trusts, at a tenth of the count or less; docs/stability.md has the full one.
test-storms: $(STAMP)
	$(BIN)/pytest -m "slow or not slow" tests/storms

# Other packages' quickstarts on the HTTP server, from environments of their own: LlamaIndex needs an older
# client of OpenAI's than the Agents SDK.
CLIENTS := .venv-clients
QUICKSTARTS := tests/engine/http/quickstarts
test-clients: $(STAMP)
	$(PYTHON) -m venv $(CLIENTS)
	$(PYTHON) -m venv $(CLIENTS)/llama_index
	$(CLIENTS)/bin/python -m pip --disable-pip-version-check -q install -r $(QUICKSTARTS)/requirements.txt
	$(CLIENTS)/llama_index/bin/python -m pip --disable-pip-version-check -q install -r $(QUICKSTARTS)/llama_index/requirements.txt
	SGC_CLIENTS_PYTHON=$(abspath $(CLIENTS)/bin/python) \
	SGC_LLAMA_INDEX_PYTHON=$(abspath $(CLIENTS)/llama_index/bin/python) $(BIN)/pytest -m slow tests/engine/http/test_clients.py

# Engines and datasets on a Ray of two workers, from an environment of their own.
RAY := .venv-ray
test-ray:
	$(PYTHON) -m venv $(RAY)
	$(RAY)/bin/python -m pip --disable-pip-version-check -q install $(CPU_INDEX) $(TORCH)
	$(RAY)/bin/python -m pip --disable-pip-version-check -q install -c constraints.txt -e '.[test,ray]'
	$(RAY)/bin/python -m pytest -m slow tests/on_ray

# The pages of `sgc view` in a real browser: Chromium of the system, or SGC_CHROMIUM.
BROWSER := .venv-browser
test-browser: $(STAMP)
	$(PYTHON) -m venv $(BROWSER)
	$(BROWSER)/bin/python -m pip --disable-pip-version-check -q install -r tests/viewer/browser/requirements.txt
	SGC_BROWSER_PYTHON=$(abspath $(BROWSER)/bin/python) $(BIN)/pytest -m slow -s tests/viewer/test_browser.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2

# The site of docs/, in site/: no network is asked while it is built, nor by its pages.
DOCS := .venv-docs
docs: $(DOCS)/.installed
	$(DOCS)/bin/codespell README.md CONTRIBUTING.md CHANGELOG.md docs
	DISABLE_MKDOCS_2_WARNING=true NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet
	$(DOCS)/bin/python -P tools/site/check.py site

$(DOCS)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip --disable-pip-version-check -q install -c constraints.txt -e '.[docs]'
	touch $@

# The doctor compiles our own kernels, so that nothing else waits for them.
# torch first and alone: left to be found as a dependency, it would bring its CUDA packages.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install $(CPU_INDEX) $(TORCH)
	$(PIP) install -c constraints.txt -e '.[test]'
	$(PIP) install -c constraints.txt --no-deps grpcio-tools
	$(BIN)/sgc doctor --no-measure
	touch $@

bench: $(STAMP)
	$(PIP) install -c constraints.txt -e '.[bench]'
	$(BIN)/python -P benches/frontend.py
	$(BIN)/python -P benches/programs.py

clean:
	rm -rf $(VENV) .venv-pythons $(CLIENTS) $(RAY) $(BROWSER) $(DOCS) site
