# Every target installs what it needs into .venv first; nothing outside this folder is touched.

PYTHON ?= python3
BIN    := .venv/bin
STAMP  := .venv/installed.stamp
ENGINES_STAMP := .venv/installed-engines.stamp

# The real data sets are not part of the repository. Tests and benchmarks that want them look here.
ifndef DARKMETRICS_DATA
ifneq ($(wildcard ../shared/data),)
export DARKMETRICS_DATA := $(abspath ../shared/data)
endif
endif

# pytest already runs one process per core; BLAS threads on top of that would only get in each other's way.
check test engines fuzz golden guarantees certificates accuracy verification paper paper-quick: export OMP_NUM_THREADS := 1
check test engines fuzz golden guarantees certificates accuracy verification paper paper-quick: export OPENBLAS_NUM_THREADS := 1

# Arrays of some megabytes come and go in tests. Memory that is handed back each time has to be got from the system anew, a
# tenth of the time of tests with many of them. Read by glibc, and by nobody else.
check test: export MALLOC_MMAP_THRESHOLD_ := 268435456
check test: export MALLOC_TRIM_THRESHOLD_ := 1073741824
check test: export MALLOC_TOP_PAD_ := 67108864

# Compiled files are read by the next run and by every process that a test starts; without them each compiles the library.
unexport PYTHONDONTWRITEBYTECODE

# Types are checked beside the tests: on its own mypy would leave the other cores idle for a minute. What it found is
# said last. Neighbours stay in one process (worksteal), and with them what they share.
define types_and_tests
@said=$$(mktemp); $(BIN)/mypy >$$said 2>&1 & types=$$!; \
		$(BIN)/pytest -q -n auto --dist worksteal $(1); tests=$$?; \
		wait $$types; found=$$?; cat $$said; rm $$said; exit $$((tests | found))
endef

.DEFAULT_GOAL := help
.PHONY: help system java demo check test engines fuzz golden lint typecheck format bench guarantees certificates accuracy verification paper \
	paper-quick walk gallery docs notebooks live dist dist-check leg clean

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

system: ## install what the browser tests need beyond Python: chromium (where there is apt-get) and axe-core
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
		! command -v apt-get >/dev/null || { \
		as_root=$$(test "$$(id -u)" = 0 || echo sudo); \
		$$as_root apt-get update -qq && $$as_root apt-get install -qq --yes --no-install-recommends chromium; }
	@if command -v npm >/dev/null; then cd tests/browser && npm ci --silent --no-audit --no-fund; \
		else echo "npm is missing: accessibility tests will be skipped." >&2; fi

java: ## install the Java that Spark needs (where there is apt-get and no Java)
	@command -v java >/dev/null || ! command -v apt-get >/dev/null || { \
		as_root=$$(test "$$(id -u)" = 0 || echo sudo); \
		$$as_root apt-get update -qq && $$as_root apt-get install -qq --yes --no-install-recommends openjdk-17-jre-headless; }

demo: $(STAMP) ## evaluate a classifier with part of its labels hidden, and print what comes out
	@$(BIN)/python examples/demo.py

# A slice of every kind: brute force, metrics, sets, words, the command line, pages. `make test` has the rest.
QUICK := tests/test_evaluate.py tests/test_metrics.py tests/test_functional.py tests/test_question.py tests/test_calls.py \
	tests/test_text.py tests/test_poisson_binomial.py tests/test_sobol.py tests/test_public_names.py \
	tests/cli/test_evaluate_command.py tests/docs/test_architecture_page.py tests/docs/test_command_line_page.py

check: $(STAMP) ## what a change needs within a minute: style, layers, types, and a slice of the tests
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/lint-imports --no-logo
	$(call types_and_tests,$(QUICK))

test: $(STAMP) ## everything a change must pass: style, layers, types, tests
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/lint-imports --no-logo
	$(call types_and_tests)

engines: $(ENGINES_STAMP) ## the tests of DataFrame engines on all of them: also PySpark (after make java), Dask and Ibis
	@$(BIN)/pytest -q -m "heavy_engines or not heavy_engines" tests/engines

# Half an hour of problems that nobody thought of; FIRST=... tries others.
SECONDS ?= 1800
FIRST ?= 100000
fuzz: $(STAMP) ## random problems against an oracle on all cores for SECONDS=1800, from seed FIRST=100000 on
	@PYTHONPATH=src:tests $(BIN)/python -m fuzz --seconds $(SECONDS) --first-seed $(FIRST)

golden: $(STAMP) ## what the library says to 560 seeded problems, and its public names, against what was kept
	@PYTHONPATH=src:tests $(BIN)/python -m golden

lint: $(STAMP) ## check style, formatting and layers
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/lint-imports --no-logo

typecheck: $(STAMP) ## check types
	@$(BIN)/mypy

format: $(STAMP) ## repair formatting and what else can be repaired safely
	@$(BIN)/ruff check --fix-only
	@$(BIN)/ruff format

bench: $(STAMP) ## measure speed, memory and error, beside others too (over an hour; downloads them)
	@$(BIN)/python -m benchmarks

guarantees: $(STAMP) ## the slow statistical tests, on from where they stopped; the table, results and pages of them
	@status=0; $(BIN)/pytest -q -n auto -m guarantees || status=$$?; \
		PYTHONPATH=src:tests $(BIN)/python -m guarantees || status=1; exit $$status

certificates: $(STAMP) ## bounds beside true distances, for the page on certificates (8 minutes on one core)
	@$(BIN)/python -m experiments.certificates

accuracy: $(STAMP) ## the four methods beside a million plain draws, on from where it stopped (an hour on one core)
	@PYTHONPATH=src:tests $(BIN)/python -m experiments.accuracy

verification: $(STAMP) ## how often dm.verify rejects, rightly and wrongly; resumes (an hour on one core)
	@PYTHONPATH=src $(BIN)/python -m experiments.verification

paper: $(STAMP) ## the paper's study again, its algorithms and ours: predictions, tables, figures, pages (under an hour)
	@$(BIN)/python -m experiments.paper all

paper-quick: $(STAMP) ## a slice of the study through all of its steps, in half a minute; part of the tests
	@$(BIN)/python -m experiments.paper all --quick

walk: $(STAMP) ## count and draw the modules that one call walks through, for the page on the architecture
	@$(BIN)/python docs/walk.py

gallery: $(STAMP) ## draw the pictures of the documentation anew
	@$(BIN)/python docs/gallery.py

docs: $(STAMP) ## build the documentation as a site into build/site, strictly, and check its links, search and accessibility
	@$(BIN)/pytest -q -m site tests/browser/test_site.py && echo "build/site/index.html"

notebooks: $(STAMP) ## run the notebooks of examples/ and compare what they print with what is stored (a minute)
	@PYTHONPATH=src $(BIN)/python examples/run_notebooks.py

# From a copy of the last commit, so that nothing lying in the working copy gets in, with the commit's time as that of
# every file. Without isolation: the version of hatchling is written into the wheel, and `dev` holds it to one.
DIST ?= dist
dist: $(STAMP) ## wheel and source archive of the last commit in DIST=dist: the same bytes wherever they are made
	@test -z "$$(git status --porcelain)" || echo "Changes that are not committed are not in it." >&2
	@tree=$$(mktemp -d) && trap 'rm -rf "$$tree"' EXIT && git archive HEAD | tar -x -C "$$tree" && \
		SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --no-isolation --outdir "$(DIST)" "$$tree"

dist-check: dist ## what is in both, that they are the same again, and that the wheel works in an empty environment
	@$(BIN)/pytest -q -m release tests/release

live: dist ## the page that runs the wheel in the browser, and the wheel, in build/live
	@mkdir -p build/live
	@cp docs/live/* "$(DIST)"/*.whl build/live

# Another environment for other versions of what the library runs on; build/ is not part of the repository. Old versions call
# what newer ones of others have deprecated; pages are made with the versions of `dev`.
LEG ?= lowest
leg: ## a slice of the tests with the oldest (LEG=lowest) or the newest (LEG=newest) dependencies, on PYTHON=python3
	@$(PYTHON) -m venv --clear build/$(LEG)
	@$(PYTHON) tests/release/oldest.py >build/lowest.txt
	@build/$(LEG)/bin/python -m pip install -qq --disable-pip-version-check \
		$(if $(filter lowest,$(LEG)),--constraint build/lowest.txt,--pre) --editable '.[all,test]'
	@build/$(LEG)/bin/python -m pip list --disable-pip-version-check
	@build/$(LEG)/bin/pytest -q -n auto $(if $(filter lowest,$(LEG)),-W ignore::DeprecationWarning) \
		$(filter-out tests/docs/%,$(QUICK))

clean: ## remove the virtual environment, caches and build products
	@rm -rf tests/browser/node_modules .venv build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Made anew when the dependencies change. The stamp comes last, so a broken install is tried again.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "darkmetrics needs Python 3.11 or newer; '$(PYTHON)' is" \
		     "$$($(PYTHON) --version 2>/dev/null || echo missing)." \
		     "Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Installing into .venv (once; about a minute) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[dev]'
	@touch $@

# Half a gigabyte that most changes need not wait for.
$(ENGINES_STAMP): $(STAMP)
	@echo "Installing PySpark, Dask and Ibis into .venv (once; about a minute) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[dev,engines]'
	@touch $@
