"""`make registry-rest`: Karapace's own tests of the REST API, run against momus' registry.

    ARGS="--karapace DIR --python DIR/bin/python"

DIR is a checkout of Karapace, the Python one that can import it, with pytest, pytest-xdist and what else its tests use.
Those of its files that take an address are run (FILES), against one broker, which is reset before each test. Each that
fails must be named in explained.py, with the reason; what is named there and passes is told too. The exit code is 1
where a failure has none.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]

from explained import EXPLAINED  # noqa: E402 - found by the line above

from momus import Broker  # noqa: E402 - found by the line above
from tests.foreign_results import outcomes, reported, say  # noqa: E402 - found by the line above

FILES = (
    *("test_schema", "test_schema_compatibility", "test_schema_avro_references", "test_schema_protobuf"),
    *("test_jsonschema", "test_dependencies_compatibility_protobuf", "test_schema_registry_mode", "test_client"),
    *("test_client_protobuf", "test_health_check", "test_schema_registry_auth"),
)
LIMIT_S = 3600


def run(folder: Path, python: str, only: str, show: bool) -> dict[str, str]:
    """Karapace's tests, and what became of them."""
    with tempfile.TemporaryDirectory() as made, Broker(registry=True) as broker:
        report = Path(made, "report.xml")
        files = [f"tests/integration/{each}.py" for each in FILES]
        words = [python, "-m", "pytest", "-p", "karapace_plugin", "-o", "addopts=", "--import-mode=importlib", "-q"]
        words += [f"--junit-xml={report}", f"--registry-url={broker.registry_url}", *(("-k", only) if only else ())]
        words += [f"--kafka-bootstrap-servers={broker.bootstrap_servers}", *files]
        paths = {"PYTHONPATH": f"{folder / 'src'}:{folder}:{HERE}"}
        paths["MOMUS_RESET"] = f"http://{broker.control.address}{broker.control.prefix}/reset"
        done = subprocess.run(
            words, cwd=folder, env={**os.environ, **paths}, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        if show:
            say(done.stdout)
        assert report.exists(), done.stdout[-3000:] + done.stderr[-3000:]
        return {f"{group.rpartition('.')[2]}::{name}": why for group, name, why in outcomes(report)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--karapace", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable, help="one that can import Karapace")
    parser.add_argument("--only", default="", help="pytest's -k")
    parser.add_argument("--show", action="store_true", help="print what pytest prints")
    options = parser.parse_args()
    found = run(options.karapace, options.python, options.only, options.show)
    return not reported("Karapace's", found, EXPLAINED, {}, is_whole=not options.only)


if __name__ == "__main__":
    sys.exit(main())
