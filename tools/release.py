"""Makes everything that a release publishes, in one folder: dist/release/VERSION. `make release`; publishes nothing.

    python/      the wheels (tools/wheels.py) and the source distribution, checked by twine
    image/       the container image of this machine's architecture, for `docker load`
    go/          the Go module as the zip that a module proxy serves
    maven/       the JUnit extension, in the layout of a Maven repository
    sbom.json    what the image brings, as CycloneDX 1.6; a release fails where the image has other packages
    LICENSES.txt the licences of what the image brings, packages and vendored files
    SHA256SUMS   of every file
    PUBLISH.md   the commands by which a person publishes it

A part that cannot be made here (no Docker Engine, no mvn) is named at the end, and the exit code is 1; --without PART
leaves one out on purpose. Without --allow-dirty the checkout must have no changes, so that the label of the image and
the files are of one commit. --base names the image's base by its digest.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import names
import vendored

REPOSITORY = names.REPOSITORY
HERE = Path(sys.executable).parent
NAMES = names.read()
BY_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
NO_DIGEST = (
    "the image's base is named by no digest, and may be another one tomorrow: --base python:3.11-slim@sha256:DIGEST, as"
    " `docker buildx imagetools inspect python:3.11-slim` says it; --base-by-tag takes any"
)
# What installs packages, and is removed from the image or never run there.
INSTALLERS = {"pip", "setuptools"}
LIST_PACKAGES = (
    "import importlib.metadata as m; print(*{f'{d.name}=={d.version}' for d in m.distributions()}, sep='\\n')"
)
# A pinned one: older ones want another form of target.
DEPLOY = "org.apache.maven.plugins:maven-deploy-plugin:3.1.2:deploy"
PUBLISH = """# Publishing {version}

Nothing here was published. From this folder, by a person who may:

```sh
sha256sum -c SHA256SUMS
twine upload python/*
docker load -i image/{package}-{version}-linux-amd64.tar.gz && docker push {image}:{version}
git tag clients/go/v{version} && git push --tags        # the Go module is served from its repository
cd maven/{path}
mvn deploy:deploy-file -Dfile={artifact}-{version}.jar -DpomFile={artifact}-{version}.pom -Durl=URL
```

An image for arm64, which was not made and not run: on such a machine the same `docker build`, or
`docker buildx build --platform linux/arm64 --build-arg REVISION=COMMIT -t {image}:{version} .`
Wheels for other platforms: `.github/workflows/wheels.yml`, not run either.
"""


class NotMadeError(Exception):
    """A part cannot be made here; the text says why."""


def run(*command: str | Path, cwd: Path = REPOSITORY) -> str:
    """Run a command to its end. Returns its output. Errors: NotMadeError, with the end of what it printed."""
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotMadeError(f"{' '.join(map(str, command))}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def needs(*commands: str) -> None:
    """Errors: NotMadeError."""
    absent = [each for each in commands if shutil.which(each) is None]
    if absent:
        raise NotMadeError(f"{' and '.join(absent)} not installed")


def make_python(folder: Path) -> None:
    """Wheels and source distribution."""
    run(sys.executable, "tools/wheels.py", folder)
    run(sys.executable, "-m", "build", "--sdist", "--outdir", folder)
    run(HERE / "twine", "check", "--strict", *sorted(folder.iterdir()))


def make_image(folder: Path, options: argparse.Namespace) -> None:
    """Build the image and save it."""
    needs("docker")
    tag = f"{NAMES.image}:{NAMES.version}"
    arguments = {"REVISION": revision()} | ({"BASE": options.base} if options.base else {})
    words = [word for key, value in arguments.items() for word in ("--build-arg", f"{key}={value}")]
    run("docker", "build", "--network", "host", *words, "--tag", tag, ".")
    machine = run("docker", "image", "inspect", "--format", "{{.Os}}-{{.Architecture}}", tag).strip()
    folder.mkdir()
    with gzip.open(folder / f"{NAMES.package}-{NAMES.version}-{machine}.tar.gz", "wb") as packed:
        saving = subprocess.Popen(["docker", "save", tag], stdout=subprocess.PIPE)
        assert saving.stdout is not None
        shutil.copyfileobj(saving.stdout, packed)
        if saving.wait():
            raise NotMadeError("docker save failed")


def make_go(folder: Path) -> None:
    """The module zip: each file under MODULE@vVERSION/, without directories. Source: https://go.dev/ref/mod#zip-files"""
    folder.mkdir()
    version = f"v{NAMES.version}"
    source = REPOSITORY / "clients" / "go"
    (folder / f"{version}.mod").write_bytes((source / "go.mod").read_bytes())
    with zipfile.ZipFile(folder / f"{version}.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for name in run("git", "ls-files", "--", ".", ":!orders", cwd=source).split():  # that is a module of its own
            packed.write(source / name, f"{NAMES.go_module}@{version}/{name}")
        packed.write(REPOSITORY / "LICENSE", f"{NAMES.go_module}@{version}/LICENSE")


def make_maven(folder: Path) -> None:
    """The extension, its sources, its Javadoc and its pom, as a repository that `<url>file://...` names."""
    needs("java", "mvn")
    pom = REPOSITORY / "clients" / "junit" / "pom.xml"
    target = f"-DaltDeploymentRepository=release::file://{folder}"
    run("mvn", "-B", "-q", "-f", pom, "-DskipTests", "package", DEPLOY, target)


def make_lists(folder: Path) -> None:
    """What the image brings: a CycloneDX file, and the licences."""
    with tempfile.TemporaryDirectory() as scratch:
        venv = Path(scratch) / "venv"
        run(sys.executable, "-m", "venv", venv)
        python = venv / "bin" / "python"
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
        run(*pip, "--require-hashes", "-r", "tools/lock.txt")
        run(*pip, ".")
        run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "setuptools", "pip")
        sbom = ("--output-format", "JSON", "--spec-version", "1.6", "--output-file", folder / "sbom.json")
        run(HERE / "cyclonedx-py", "environment", "--pyproject", "pyproject.toml", *sbom, python)
        text = ("--format", "plain-vertical", "--with-license-file", "--no-license-path")
        run(HERE / "pip-licenses", "--python", python, *text, "--output-file", folder / "LICENSES.txt")
    vendored.add(REPOSITORY, folder / "LICENSES.txt", folder / "sbom.json")


def compare(sbom: str, installed: str) -> list[str]:
    """What the list of parts and the image do not both have.

    sbom       CycloneDX, as JSON.
    installed  NAME==VERSION in each line, as the image says it.
    """

    def plain(rows: list[str]) -> set[str]:
        pairs = (row.partition("==") for row in rows)
        found = {(re.sub("[-_.]+", "-", name).lower(), version) for name, _, version in pairs}
        return {f"{name}=={version}" for name, version in found if name not in {*INSTALLERS, NAMES.package}}

    parts = [each for each in json.loads(sbom)["components"] if str(each.get("purl", "")).startswith("pkg:pypi/")]
    listed, brought = plain([f"{each['name']}=={each['version']}" for each in parts]), plain(installed.split())
    return [
        *(f"the image has {each}, and the list of parts has not" for each in sorted(brought - listed)),
        *(f"the list of parts has {each}, and the image has not" for each in sorted(listed - brought)),
    ]


def check_image(folder: Path) -> None:
    """Hold the list of parts to the image that was made. Errors: NotMadeError: they differ."""
    tag = f"{NAMES.image}:{NAMES.version}"
    python = "/opt/momus/bin/python"
    installed = run("docker", "run", "--rm", "--entrypoint", python, tag, "-c", LIST_PACKAGES)
    if different := compare((folder / "sbom.json").read_text(), installed):
        raise NotMadeError("; ".join(different))


def revision() -> str:
    """The commit that is released."""
    return run("git", "rev-parse", "HEAD").strip()


def write_sums(folder: Path) -> None:
    """As `sha256sum -c` reads them."""
    files = sorted(each for each in folder.rglob("*") if each.is_file())
    lines = [f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.relative_to(folder)}\n" for each in files]
    (folder / "SHA256SUMS").write_text("".join(lines))


def say_how_to_publish(folder: Path) -> None:
    """PUBLISH.md."""
    words = {"path": f"{NAMES.maven_group.replace('.', '/')}/{NAMES.maven_artifact}/{NAMES.version}"}
    words |= {"version": NAMES.version, "package": NAMES.package}
    words |= {"image": NAMES.image, "artifact": NAMES.maven_artifact}
    (folder / "PUBLISH.md").write_text(PUBLISH.format(**words))


def main(arguments: Sequence[str] | None = None) -> int:
    """Make each part, and say what is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="", help="the image to build on, NAME@sha256:DIGEST")
    parser.add_argument("--base-by-tag", action="store_true", help="take one that is named by no digest")
    parser.add_argument("--without", action="append", default=[], choices=["python", "image", "go", "maven", "lists"])
    parser.add_argument("--allow-dirty", action="store_true")
    options = parser.parse_args(arguments)
    lines = names.wrong()
    if "image" not in options.without and not options.base_by_tag and not BY_DIGEST.search(options.base):
        lines.append(NO_DIGEST)
    if not options.allow_dirty and run("git", "status", "--porcelain").strip():
        lines.append("the checkout has changes that no commit has; --allow-dirty takes them")
    if not (REPOSITORY / "tests" / "e2e" / "samples" / NAMES.version).is_dir():
        lines.append("no samples of this version: make samples, and commit them")
    if lines:
        sys.exit("\n".join(lines))
    folder = REPOSITORY / "dist" / "release" / NAMES.version
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    parts: dict[str, Callable[[], None]] = {
        "python": lambda: make_python(folder / "python"),
        "image": lambda: make_image(folder / "image", options),
        "go": lambda: make_go(folder / "go"),
        "maven": lambda: make_maven(folder / "maven"),
        "lists": lambda: make_lists(folder),
    }
    if not {"image", "lists"} & set(options.without):
        parts["lists of the image"] = lambda: check_image(folder)
    failed = []
    for name, make in parts.items():
        if name in options.without:
            continue
        begin_s = time.monotonic()
        try:
            make()
        except NotMadeError as error:
            failed.append(f"NOT MADE: {name}: {error}")
        sys.stderr.write(f"{name}: {time.monotonic() - begin_s:.0f} s\n")
    say_how_to_publish(folder)
    write_sums(folder)
    for each in sorted(folder.rglob("*")):
        if each.is_file():
            sys.stderr.write(f"{each.stat().st_size:12,}  {each.relative_to(folder.parent)}\n")
    sys.stderr.write("".join(f"{line}\n" for line in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
