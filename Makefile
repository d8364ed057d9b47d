# One command each: a broker to use, the tests, the numbers. Needs Python 3.11 or newer and make; nothing is compiled.

# The first of these that is new enough makes the virtual environment.
PYTHONS := $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11 python
VENV := .venv
BIN := $(VENV)/bin
LISTEN ?= 127.0.0.1:9092
DATA ?= ./data
CRASH_ROUNDS ?= 200
# pytest's workers where clients wait, two a processor of the usual two: two workers leave a third of the time unused.
WORKERS ?= 4
# And where nothing waits, one a processor, four at most: each reads all tests, which takes it up to 16 seconds.
LIGHT_WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((n < 4 ? n : 4)))

# What make test selects, and what make coverage measures: all that has no other target, but for what test-heavy runs.
LIGHT := -n $(LIGHT_WORKERS) --dist worksteal --light -m "not java and not spark and not page and not image and not slow and not heavy"

# Bytecode is kept even where the environment forbids it: without, each of pytest's workers rewrites 300 test files anew (4 s).
export PYTHONDONTWRITEBYTECODE :=

.PHONY: serve test test-all test-fast test-heavy test-slow test-deep lint pytest test-construct test-java test-proxy differ differ-long golden starts test-clients test-image test-image-modules test-module-texts test-pipeline pipeline-short pipeline-long test-spark-cluster pipeline-demo bench crash power-cuts histories planted-bugs exactly-once test-ecosystem client-table registry-pairs registry-rest registry-confluent registry-differ explore-proof explore-classes e2e-java compiled test-compiled wheels binary docs samples release work-counts test-examples test-page page-shots mutants coverage soak new-release clean

serve: $(VENV)/.core
	exec $(BIN)/momus serve --listen $(LISTEN) --data-dir $(DATA) $(ARGS)

# What a change must pass: style, types, and every test that starts no process of its own and takes about a second at most;
# of those that start some, the files of LIGHT in tests/heavy.py.
# Style and types are checked beside the tests, 25 seconds less on two cores; what they find is told at once, and at the end.
test: $(VENV)/.dev
	@mkdir -p build
	@{ $(MAKE) --no-print-directory lint >build/lint.txt 2>&1 || { tail -n 40 build/lint.txt; exit 1; }; } & style=$$!; \
	  $(MAKE) --no-print-directory pytest; tests=$$?; \
	  wait $$style || { tail -n 40 build/lint.txt; echo "make test: style or types have failed"; exit 1; }; exit $$tests

# The heavy tests and the slow ones as well: real clients, long crash sweeps, simulations of many seeds, minutes of fuzzing.
test-all: test test-heavy test-slow

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=tests $(BIN)/mypy --explicit-package-bases tests/differential
	$(BIN)/python tools/dead_code.py

pytest: $(VENV)/.dev
	$(BIN)/python -m pytest $(LIGHT) --durations 10 $(ARGS)

# The lines of the product that `make test` reaches, processes that it starts included: the share of each file in build/coverage.
coverage: $(VENV)/.coverage
	rm -rf build/coverage && mkdir -p build/coverage
	$(BIN)/python -m coverage run -m pytest $(LIGHT) -q $(ARGS)
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report >build/coverage/report.txt && tail -n 1 build/coverage/report.txt

# The second part of what a change must pass, which the gate runs after make test: what starts processes (real clients, commands,
# kill -9), and what takes more than a second of the processor. tests/heavy.py has the rule, and holds make test to it.
test-heavy: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations 10 --durations-min 3 \
	  -m "heavy and not java and not spark and not page and not image and not slow" $(ARGS)

# The inner loop: what runs in this process alone, 45 seconds on two free cores.
test-fast: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow and not heavy and not e2e" tests/unit tests/property tests/tidy $(ARGS)

# What the gate leaves out for its time, then fuzzing and kill -9 for longer than there.
LONGER := tests/fuzz tests/crash/test_broker_kill_9.py tests/crash/test_commits_killed.py tests/crash/test_transactions_processes.py
test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "slow and not java and not spark and not page and not image" $(ARGS)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" --fuzz-seconds 5 --crash-rounds 5 $(LONGER)

# The properties, each with forty times the examples.
test-deep: $(VENV)/.dev
	MOMUS_HYPOTHESIS=deep $(BIN)/python -m pytest -n 2 --dist worksteal --timeout 0 -m "not java and not spark and not e2e" \
	  $$(grep -rl --include='test_*.py' --exclude-dir=pipeline hypothesis tests) $(ARGS)

# The real clients again, with every request read and every response written by construct.
test-construct: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not java and not spark and not page and not image" --codec construct tests/e2e $(ARGS)

# The same broker under Apache Kafka's own clients and console tools, fetched by Maven on the first run.
test-java e2e-java: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "java and not spark and not proxy" --require-java $(ARGS)

# momus proxy before Apache Kafka 4.4.0, 4.3.1 and 3.9.1, fetched by Maven, kfake, built by go, and three nodes that are killed; the
# checks of Java's clients and the console tools with it and without.
test-proxy: $(VENV)/.dev
	$(BIN)/python -m pytest tests/e2e/proxy -m "java or not java" --require-java --timeout 900 $(ARGS)

# The kits for Go, the JVM and Node, each with the orders suite in its language; needs go, java, mvn, node and npm. What is here of
# go, mvn and npm is run; the others are named.
test-clients: $(VENV)/.core
	tools/test_clients.sh "$(CURDIR)/$(BIN)/momus"

# The image, built and run on a Docker Engine: the one that answers, or Debian's, installed and started here as root.
test-image: $(VENV)/.dev
	$(BIN)/python -m pytest -m "image and not modules" tests/e2e/image $(ARGS)

# The image by Testcontainers' modules for Java, Python, Go and Node, fetched by mvn, pip, go and npm.
test-image-modules: $(VENV)/.image-dev
	$(BIN)/python -m pytest -m modules tests/e2e/image $(ARGS)

# Do Testcontainers' modules, fetched by mvn, pip and go, still say what the image is tested with?
test-module-texts: $(VENV)/.dev
	$(BIN)/python tests/e2e/packaging/module_texts.py $(ARGS)

# Random requests to Apache Kafka, fetched by Maven, and to this broker, answers compared: ARGS="--seed 7 --cases 300".
# tests/differential/__main__.py names all options.
differ: $(VENV)/.dev
	PYTHONPATH=tests $(BIN)/python -m differential $(ARGS)

# A million pairs, a few hours; goes on where it was stopped.
differ-long: $(VENV)/.dev
	PYTHONPATH=tests nice $(BIN)/python -m differential --seed 100 --pairs 1000000 --state build/differential/long.json $(ARGS)

# Writes tests/conformance/golden_*.txt by Kafka's own classes, after a message has been added or has a new version.
golden: $(VENV)/.dev
	$(BIN)/python tests/conformance/make_golden.py

# Writes tests/conformance/starts.json: with which settings Apache Kafka starts, and its words where it does not; three minutes.
starts: $(VENV)/.dev
	PYTHONPATH=tests $(BIN)/python -m differential.start_live

# What a release of Apache Kafka changed, and what of it is not served here: ARGS="4.3.1 4.4.0", as docs/new-release.md says.
new-release: $(VENV)/.dev
	$(BIN)/python tools/new_release.py $(ARGS)

# The pipeline: its types, then its tests in two Sparks (3 GB each), a file in one of them. Java comes by pip where there is none.
test-pipeline: $(VENV)/.spark-dev
	$(BIN)/mypy -p pipeline
	$(BIN)/python -m pytest tests/pipeline -n 2 --dist loadfile --no-loadscope-reorder -m spark --require-spark --timeout 600 $(ARGS)

# The part of them that the gate runs: Spark reads our logs, and what it reads is what Apache Kafka wrote.
pipeline-short: $(VENV)/.spark-dev
	$(BIN)/mypy -p pipeline
	$(BIN)/python -m pytest tests/pipeline/golden tests/pipeline/source -n 2 --dist loadfile --no-loadscope-reorder -m spark --require-spark --timeout 600 $(ARGS)

# Their long form: ten kills of a streaming job, random histories, Delta, the demo, audits of archives, cleaned logs and running brokers.
pipeline-long: $(VENV)/.spark-dev
	$(BIN)/python -m pytest tests/pipeline -m spark --require-spark --pipeline-long --timeout 900 -k "killed or follow or audit or demo or delta" $(ARGS)

# Every job on a standalone cluster, a master and two workers of one core and 1 GB on loopback, one executor of each killed at work.
test-spark-cluster: $(VENV)/.spark-dev
	$(BIN)/python -m pytest tests/pipeline/cluster -n 0 -s -m spark --require-spark --pipeline-long --timeout 900 $(ARGS)

# Everything from nothing: a broker, clients that misbehave, every job, and one HTML page of what was found.
pipeline-demo: $(VENV)/.spark
	$(BIN)/python -m pipeline.demo $(ARGS)

# The table of docs/figures.md: the wheel that a user gets, compiled for this Python, in an environment of its own, beside pure Python and the peers;
# needs a C compiler, go, java and mvn. Without the wheel: .venv/bin/python -m benchmarks
bench: $(VENV)/.wheels
	rm -rf build/installed build/installed-wheels
	$(BIN)/python tools/wheels.py build/installed-wheels --python $(BIN)/python
	$(BIN)/python -m venv build/installed
	build/installed/bin/python -m pip install --quiet --disable-pip-version-check -c tools/constraints.txt build/installed-wheels/momus-*-cp3*.whl
	$(BIN)/python -m benchmarks --momus build/installed/bin/momus $(ARGS)

# Optional: a copy of the project in build/compiled in which the serving path is compiled by mypyc; needs a C compiler.
compiled: $(VENV)/.dev
	$(BIN)/python tools/compiled.py build/compiled

# The wheels that a user gets, in dist: one compiled for each interpreter here, and the pure one; needs a C compiler.
wheels: $(VENV)/.wheels
	$(BIN)/python tools/wheels.py $(ARGS)

# The binary for machines without Python, in dist: for Linux and this processor; needs a C compiler and binutils.
binary: $(VENV)/.wheels
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python tools/binary.py $(ARGS)

# The documents as a site with search and an API reference, in build/site; a warning is an error.
docs: $(VENV)/.docs
	$(BIN)/python tools/docs_site.py

# What this version writes to disk, in tests/e2e/samples/VERSION: before a release, which the next version must open.
samples: $(VENV)/.dev
	PYTHONPATH=tests/e2e/samples $(BIN)/python tests/e2e/samples/make_samples.py

# All that a release publishes, in dist/release/VERSION: wheels, image, kits, list of parts, licences, checksums. Publishes nothing.
release: $(VENV)/.release
	$(BIN)/python tools/release.py $(ARGS)

# What users install: the suites of examples/, and each command, option, fixture, verb and code block of README and docs/
# (tests/installed), from the built wheel, in clean environments.
test-examples: $(VENV)/.dev
	$(BIN)/python tools/run_examples.py

# What runs against whole brokers, on that build. Left out is what hands a class something that only looks like another, or is
# derived from one, or replaces a method of one: compiled ones refuse it; and what makes wheels of the checkout.
test-compiled: compiled
	cd build/compiled && $(abspath $(BIN))/python -m pytest -n 2 --dist worksteal -m "not java and not spark and not page and not image" \
	  --ignore tests/property/test_producers_model.py --ignore tests/property/test_transactions_model.py \
	  --ignore tests/property/test_cleaned_transactions_model.py --ignore tests/e2e/packaging/test_wheel.py \
	  --ignore tests/e2e/packaging/test_compiled_wheel.py \
	  --deselect tests/crash/test_log_failures.py::test_power_cut_at_any_operation_loses_nothing_that_was_synced \
	  --deselect tests/unit/storage/test_compaction_edges.py::test_neighbours_become_one_as_far_as_size_and_offsets_allow \
	  --deselect tests/unit/storage/test_log.py::test_delete_takes_names_away_while_the_files_are_open_so_that_others_free_them \
	  --deselect tests/unit/storage/test_small_files.py::test_older_snapshots_go_while_they_are_open_so_that_others_free_them \
	  tests/property tests/crash tests/simulation tests/conformance tests/e2e tests/unit/storage $(ARGS)

# Keeps what usual requests take, in calls, instructions and blocks of memory: tests/work compares with it.
work-counts: $(VENV)/.dev
	PYTHONPATH=.:tests PYTHONHASHSEED=0 $(BIN)/python -m work --renew

# The page of the control plane in headless Chromium: its numbers held against the admin API, and axe-core's findings.
test-page: $(VENV)/.page-dev
	$(BIN)/python -m pytest tests/e2e/page -n 2 --dist loadfile -m page --require-page $(ARGS)

# The pictures of docs/page.md.
page-shots: $(VENV)/.page-dev
	PYTHONPATH=tests:tests/e2e:tests/e2e/page $(BIN)/python tests/e2e/page/shots.py

# Mutation tests: a seeded sample, about an hour. To go on with one that was stopped: ARGS="--resume build/mutants-1.jsonl".
mutants: $(VENV)/.mutants
	$(BIN)/python tools/mutants.py $(ARGS)

# The long form of the crash tests: kill -9 under load, again and again.
crash: $(VENV)/.dev
	$(BIN)/python -m pytest -m crash --crash-rounds $(CRASH_ROUNDS) --timeout 0 $(ARGS)

# What a broker does to its disk is written down, and the disk cut at random moments: ARGS="--cuts 500 --flush os --resume".
power-cuts: $(VENV)/.dev
	PYTHONPATH=.:tests:tests/crash $(BIN)/python -m power_cuts.campaign $(ARGS)

# Are the bugs found that power-cuts and histories are for? Each is planted into a copy. ARGS='"data is not synced"'.
planted-bugs: $(VENV)/.dev
	$(BIN)/python tests/crash/planted.py $(ARGS)

# Clients of three libraries over kills, pauses, moved clocks and changed features: was it atomic, once, in order, isolated?
# ARGS="--kills 100 --seed 7 --resume --state DIR".
histories: $(VENV)/.dev
	PYTHONPATH=.:tests:tests/crash $(BIN)/python -m histories.campaign $(ARGS)

# Processes that copy 100,000 records in transactions are killed inside them, and so is their broker: ARGS="--client aiokafka --seed 1".
exactly-once: $(VENV)/.dev
	$(BIN)/python tests/e2e/exactly_once/copy_run.py $(ARGS)

# An hour of mixed clients, kill -9 and moved clocks: does anything grow? ARGS="--minutes 10 --kill-every 120 --seed 2".
soak: $(VENV)/.dev
	$(BIN)/python tests/e2e/soak/soak.py $(ARGS)

# Random pairs of schemas, judged by momus, by Confluent's client and parsers, and by Karapace:
# ARGS="--confluent DIR --karapace DIR --python DIR/bin/python". Needs java and mvn; tests/registry_pairs/__main__.py says more.
registry-pairs: $(VENV)/.dev
	nice $(BIN)/python tests/registry_pairs $(ARGS)

# Karapace's own tests of the registry's REST API, run against ours: ARGS="--karapace DIR --python DIR/bin/python".
registry-rest: $(VENV)/.dev
	nice $(BIN)/python tests/registry_rest $(ARGS)

# Confluent's own tests of its registry, compiled from its sources and run against ours: ARGS="--sources DIR --kafka HOST:PORT".
# Needs java and javac 17, mvn and git; tests/registry_confluent/__main__.py says more.
registry-confluent: $(VENV)/.dev
	nice $(BIN)/python tests/registry_confluent $(ARGS)

# Random sequences of requests to Confluent's registry, compiled from its sources, and to ours, answers compared:
# ARGS="--seed 1 --cases 2000 --sources DIR". Needs java and javac 17, mvn and git; tests/registry_differ/__main__.py says more.
registry-differ: $(VENV)/.dev
	nice $(BIN)/python tests/registry_differ $(ARGS)

# Services with a bug each, explored: every bug must be found within 60 s; and right ones, where nothing must be.
# ARGS="--planted --right --only PATTERN"; tests/explored/__main__.py says more.
explore-proof: $(VENV)/.dev
	nice $(BIN)/python tests/explored $(ARGS)

# Whether the requests that stand for a class find each bug that all requests find, on generated programs (a quarter of an hour
# for 200). ARGS="--programs 200 --seed 1".
explore-classes: $(VENV)/.dev
	$(BIN)/python tests/explored/generated.py $(ARGS)

# Programs that others wrote for Kafka, fetched and run on momus; writes docs/ecosystem.md. A selection: ARGS="connect flink".
test-ecosystem: $(VENV)/.dev
	$(BIN)/python tests/ecosystem $(ARGS)

# What clients of seven libraries do when they meet errors and faults, 1,512 runs in a quarter of an hour; writes docs/clients.md.
# Goes on where it was stopped. A selection: ARGS="--client sarama --row NOT_COORDINATOR --again". Needs go, java, mvn and npm.
client-table: $(VENV)/.dev
	PYTHONPATH=tests nice -n 10 $(BIN)/python -m client_table $(ARGS)

$(VENV)/pyvenv.cfg:
	@for python in $(PYTHONS); do \
	  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "$$python -m venv $(VENV)"; exec $$python -m venv $(VENV); \
	  fi; \
	done; echo "momus needs Python 3.11 or newer; name one with make PYTHON=..." >&2; exit 1

# Installed in place, and again whenever the dependencies may have changed.
$(VENV)/.core: pyproject.toml tools/constraints.txt | $(VENV)/pyvenv.cfg
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary -c tools/constraints.txt -e .
	@touch $@

$(VENV)/.dev: pyproject.toml tools/constraints.txt | $(VENV)/pyvenv.cfg
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary -c tools/constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.core

# Where no Java of 17 or newer is found, pip brings one.
$(VENV)/.spark: pyproject.toml | $(VENV)/pyvenv.cfg
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary -c tools/constraints.txt -e '.[spark,demo]'
	$(BIN)/python -m pipeline.spark_setup.java >/dev/null 2>&1 || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary -c tools/constraints.txt -e '.[jdk]'
	@touch $@ $(VENV)/.core

$(VENV)/.spark-dev: pyproject.toml | $(VENV)/.dev $(VENV)/.spark
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary -c tools/constraints.txt -e '.[pipeline-dev]'
	@touch $@

$(VENV)/.page-dev: pyproject.toml | $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary -c tools/constraints.txt -e '.[page-dev]'
	@touch $@

$(VENV)/.image-dev: pyproject.toml | $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary -c tools/constraints.txt -e '.[image-dev]'
	@touch $@

$(VENV)/.wheels: pyproject.toml | $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary -c tools/constraints.txt -e '.[wheels]'
	@touch $@

$(VENV)/.release: pyproject.toml | $(VENV)/.dev $(VENV)/.wheels
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary -c tools/constraints.txt -e '.[release]'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary -c tools/constraints.txt -e '.[docs]'
	@touch $@

$(VENV)/.coverage: pyproject.toml | $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary -c tools/constraints.txt -e '.[coverage]'
	@touch $@

$(VENV)/.mutants: pyproject.toml | $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --prefer-binary -c tools/constraints.txt -e '.[mutants]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis tests/e2e/java/target
