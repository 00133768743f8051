# Everything that a newcomer needs: each command makes what is missing, and is quick the second time.
PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet
SOURCES := pyproject.toml setup.py imgops/_common/_memory.c imgops/transforms/_core/_draws.c $(wildcard imgops/kernels/cpu/_native*.[ch])

# A part of the tests that a change of any kind is likely to fail, in seconds; make check leaves graphs out.
QUICK := structure reference errors native color geometry values fast_path torch_private checkers
# Those of a wheel, which need no file beside tests.
INSTALLED := reference errors native color geometry values fast_path torch_private
SANITIZE := -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -ffp-contract=off

SANITIZED = LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0

PYTHON_HEADERS = -I"$$($(PY) -c 'import sysconfig; print(sysconfig.get_path("include"))')"

.PHONY: help demo test test-all same test-oldest wheel builds check sanitize lint format bench docs docs-noplot clean
.DELETE_ON_ERROR:

help: ## Show the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## Show the operators on a photograph; PHOTO=path takes yours
	$(PY) -m examples.demo $(if $(PHOTO),"$(PHOTO)")

test: $(VENV)/.test ## Run the quick tests, on all cores: four minutes on two
	$(PY) -m pytest -n auto --dist worksteal

# Three workers for two cores: many of these tests wait for programs that they start.
test-all: $(VENV)/.test ## Run all tests, nightly ones too: before a release; PART=2/6 runs the second sixth of the nightly ones
	$(PY) -m pytest -n $$(($$(getconf _NPROCESSORS_ONLN) * 3 / 2)) --dist worksteal --all $(if $(PART),--part $(PART))

same: $(VENV)/.test ## Compare pixels and draws of everything with the checksums in tests/same.json
	$(PY) -m tests.same

# No compiler is on the path of the tests, and no file of this folder.
wheel: $(VENV)/.wheel ## Build the source distribution and the wheel, audit it, test it in an environment of its own
	rm -rf build/wheel
	IMGOPS_JPEG=1 $(PY) -m build --outdir build/wheel .
	$(PY) -m abi3audit --strict --summary build/wheel/*.whl
	PATH="$(abspath $(VENV))/bin:$$PATH" $(PY) -m auditwheel repair --wheel-dir build/wheel/repaired build/wheel/*.whl
	$(PYTHON) -m venv build/wheel/env
	build/wheel/env/bin/python -m pip --disable-pip-version-check --quiet install \
		"$$(echo build/wheel/repaired/*.whl)[test]"
	@PY=build/wheel/env/bin/python; $$PY -c 'import cv2' 2>/dev/null || { $$PY -m pip uninstall --quiet --yes opencv-python; \
		$$PY -m pip install --quiet --force-reinstall --no-deps opencv-python-headless; }
	mkdir build/wheel/run && cp -r tests build/wheel/run && cd build/wheel/run && cp ../../../pyproject.toml . && \
		PATH="$(abspath build/wheel/env)/bin" python -m imgops info && \
		PATH="$(abspath build/wheel/env)/bin" python -m pytest -n auto $(INSTALLED:%=tests/test_%.py)

# Without a compiler, and without libjpeg-turbo. What the builds depend on comes from the virtual environment.
builds: $(VENV)/.test ## Test the installed package as it is built without the native modules, and without the decoder
	rm -rf build/builds
	@set -e; for build in IMGOPS_PURE=1 IMGOPS_JPEG=0; do \
		folder="$(abspath build/builds)/$$build"; mkdir -p "$$folder/run"; cp -r tests pyproject.toml "$$folder/run"; \
		env "$$build" $(PIP) install --no-deps --target "$$folder/site" .; \
		cd "$$folder/run"; export PYTHONPATH="$$folder/site"; \
		$(abspath $(PY)) -c 'import imgops, os; assert imgops.__file__.startswith(os.environ["PYTHONPATH"])'; \
		$(abspath $(PY)) -m imgops info; \
		$(abspath $(PY)) -m pytest -n auto $(INSTALLED:%=tests/test_%.py); \
		cd "$(CURDIR)"; done

# The lower bounds of pyproject.toml.
OLDEST := torch==2.11.0 torchvision==0.26.0 pillow==11.0.0 opencv-python==4.12.0.88 numpy==2.2.0 matplotlib==3.10.0 tqdm==4.67.0
test-oldest: ## Run the quick tests with the oldest versions of what imgops depends on
	$(MAKE) VENV=$(VENV)-oldest INSTALL="$(OLDEST)" $(VENV)-oldest/.test
	$(VENV)-oldest/bin/python -m pytest -n auto $(QUICK:%=tests/test_%.py)

check: lint $(VENV)/.test ## Lint, types and the quick tests: what to run before each commit
	$(PY) -m pytest -n auto --dist worksteal $(QUICK:%=tests/test_%.py) -k "not test_compiled"

sanitize: $(VENV)/.test ## Run the native module with checks of its memory accesses and of undefined behavior
	@mkdir -p build/sanitize
	$(CC) -shared -fPIC $(SANITIZE) $(PYTHON_HEADERS) imgops/kernels/cpu/_native.c -o build/sanitize/_native.so
	$(SANITIZED) $(PY) tests/native_program.py 5000 build/sanitize/_native.so
	$(CC) -shared -fPIC $(SANITIZE) $(PYTHON_HEADERS) imgops/_common/_memory.c -o build/sanitize/_memory.so
	$(SANITIZED) $(PY) -m tests.sanitized build/sanitize/_native.so build/sanitize/_memory.so 1000
	$(CC) -shared -fPIC $(SANITIZE) $(PYTHON_HEADERS) imgops/transforms/_core/_draws.c -o build/sanitize/_draws.so -lm
	$(SANITIZED) $(PY) -m tests.fuzz_draws 100000 build/sanitize/_draws.so
	@if $(PY) -c 'import imgops.kernels.cpu._native_jpeg' 2>/dev/null; then set -ex; \
		$(CC) -shared -fPIC $(SANITIZE) $(PYTHON_HEADERS) imgops/kernels/cpu/_native_jpeg.c -o build/sanitize/_native_jpeg.so -ljpeg; \
		$(SANITIZED) $(PY) -m tests.fuzz_decode 3000 build/sanitize/_native_jpeg.so; \
	else echo "imgops was built without libjpeg-turbo: its decoder is not checked" >&2; fi

lint: $(VENV)/.lint ## Check style, format and types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

format: $(VENV)/.lint ## Format the code
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: $(VENV)/.bench ## Time imgops next to the raw libraries, torchvision, kornia, albumentations and transformers
	$(PY) -m benchmarks
	$(PY) -m benchmarks.calls
	$(PY) -m benchmarks.pipelines
	$(PY) -m benchmarks.recipes
	$(PY) -m benchmarks.loading
	$(PY) -m benchmarks.threads
	$(PY) -m benchmarks.batches
	$(PY) -m benchmarks.gradients
	$(PY) -m benchmarks.processors
	$(PY) -m benchmarks.conversions
	$(PY) -m benchmarks.converted
	$(PY) -m benchmarks.albumentations_calls

docs: $(VENV)/.docs ## Build the pages, run the gallery, look at every page in a browser
	$(PY) -m sphinx -W --keep-going -b html docs docs/_build/html
	$(PY) -m pytest -n auto docs/test_pages.py
	@echo "Open docs/_build/html/index.html"

docs-noplot: $(VENV)/.docs ## Build the pages without running the gallery
	$(PY) -m sphinx -W --keep-going -b html -D plot_gallery=0 docs docs/_build/html

clean: ## Remove the virtual environment and what was built
	rm -rf $(VENV) build *.egg-info imgops/kernels/cpu/_native*.so imgops/_common/_memory*.so imgops/transforms/_core/_draws*.so \
		docs/_build docs/api docs/api.rst docs/gallery

# Of the libraries that tests, benchmarks and pages compare with.
PEERS := albumentations==2.0.8 albucore==0.0.24 lightly==1.6.0 "lightning-utilities>=0.11" dinov2==0.0.1.dev2
COMMA := ,

# A machine without a display often has no libGL: the headless build of OpenCV does not need it.
define install
	$(PIP) install --editable '.$(1)' $(INSTALL)
	@$(PY) -c 'import cv2' 2>/dev/null || { $(PIP) uninstall --yes opencv-python; \
		$(PIP) install --force-reinstall --no-deps opencv-python-headless; $(PY) -c 'import cv2'; }
	@touch $@
endef

$(VENV)/.base: $(SOURCES)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "imgops needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@echo "Installing imgops and what it needs into $(VENV) (PyTorch is several gigabytes)"
	$(call install,)

$(VENV)/.lint $(VENV)/.demo $(VENV)/.wheel: $(VENV)/.%: $(VENV)/.base
	$(call install,[$*])

$(VENV)/.test: EXAMPLES := $(COMMA)examples
$(VENV)/.test $(VENV)/.bench $(VENV)/.docs: $(VENV)/.%: $(VENV)/.base
	$(PIP) install --no-deps $(PEERS)
	$(call install,[$*$(COMMA)peers$(EXAMPLES)])
