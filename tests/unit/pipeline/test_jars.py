"""The connector's jars: kept when they are right, fetched when not, never used when what came is something else."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from pipeline.errors import PipelineError
from pipeline.spark_setup import jars
from pipeline.spark_setup.key_store import key_store

CONTENT = b"the right bytes"
JAR = jars.Jar("org.example", "thing_2.13", "1.2", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def folder(monkeypatch, tmp_path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "_ivy", lambda: Path("ivy.jar"))
    return tmp_path / "cache" / "momus" / "jars"


def make_ivy(home: Path, writes: bytes | None) -> Path:
    """A Java that plays Ivy: puts `writes` where the jar is to go, or finds nothing."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    action = "echo unresolved; exit 1" if writes is None else f"printf '{writes.decode()}' > \"$file\""
    program.write_text(
        '#!/bin/sh\nfor word; do [ "$previous" = -retrieve ] && pattern=$word; previous=$word; done\n'
        f'file="${{pattern%/*}}/thing_2.13-1.2.jar"\n{action}\n'
    )
    program.chmod(0o755)
    return home


@pytest.mark.heavy
def test_jar_is_fetched_once(folder, tmp_path):
    assert jars.fetch([JAR], make_ivy(tmp_path / "java", CONTENT)) == [folder / "thing_2.13-1.2.jar"]
    assert jars.fetch([JAR], tmp_path / "no java any more") == [folder / "thing_2.13-1.2.jar"]
    assert [path.name for path in folder.iterdir()] == ["thing_2.13-1.2.jar"]


@pytest.mark.heavy
def test_jar_that_was_damaged_in_the_cache_is_fetched_again(folder, tmp_path):
    folder.mkdir(parents=True)
    (folder / JAR.file_name).write_bytes(b"half of")
    jars.fetch([JAR], make_ivy(tmp_path / "java", CONTENT))
    assert (folder / JAR.file_name).read_bytes() == CONTENT


@pytest.mark.heavy
def test_jar_with_other_bytes_is_refused_and_not_kept(folder, tmp_path):
    with pytest.raises(PipelineError, match=r"thing_2\.13-1\.2\.jar has the SHA-256 .* it is not used"):
        jars.fetch([JAR], make_ivy(tmp_path / "java", b"something else"))
    assert list(folder.iterdir()) == []


@pytest.mark.heavy
def test_jar_that_cannot_be_fetched_is_named_with_the_folder_to_put_it_in(folder, tmp_path):
    with pytest.raises(PipelineError) as failure:
        jars.fetch([JAR], make_ivy(tmp_path / "java", None))
    first, *said = str(failure.value).splitlines()
    assert "org.example:thing_2.13:1.2" in first
    assert first.endswith(f"put thing_2.13-1.2.jar into {folder}")
    assert said == ["unresolved"]


@pytest.mark.heavy
def test_jar_behind_a_proxy_is_fetched_with_the_certificates_that_python_trusts(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(jars, "write_key_store", lambda path: bool(path.write_bytes(b"certificates")))
    java = make_ivy(tmp_path / "java", CONTENT)
    program = java / "bin" / "java"
    script = program.read_text().replace(
        "#!/bin/sh\n",
        "#!/bin/sh\ncase $1 in *trustStore=*/trusted) ;; *) echo PKIX path building failed; exit 1;; esac\n",
    )
    program.write_text(script)
    jars.fetch([JAR], java)
    assert (folder / JAR.file_name).read_bytes() == CONTENT


def test_key_store_holds_every_certificate_and_a_digest_over_all():
    store = key_store([b"first", b"second one"])
    assert store[:12] == bytes.fromhex("feedfeed 00000002 00000002")
    assert store[12:-20].count(b"X.509") == 2
    assert store[:-20].endswith(b"\x00\x00\x00\x0asecond one")
    assert store[-20:] == hashlib.sha1("changeit".encode("utf-16-be") + b"Mighty Aphrodite" + store[:-20]).digest()


def test_every_pinned_jar_carries_a_whole_sha256():
    for jar in (*jars.KAFKA, *jars.DELTA):
        assert len(bytes.fromhex(jar.sha256)) == 32
    assert len({jar.sha256 for jar in (*jars.KAFKA, *jars.DELTA)}) == 6
