"""Writes the code of the documents for other languages to where the kits' suites compile and run it.

    python3 tools/doc_code.py       called by tools/test_clients.sh

Each block of docs/languages.md and docs/coming-from.md in Go, Java or JavaScript becomes a file in a folder `documents`
of the orders suite in that language. A block of Java is without its imports, which its page names in words; one of
JavaScript is for node:test, unless its first line says that it is for vitest.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = ("languages.md", "coming-from.md")
CLIENTS = REPOSITORY / "clients"
FOLDERS = {
    "go": CLIENTS / "go/orders/documents",
    "java": CLIENTS / "junit/orders/src/test/java/documents",
    "js": CLIENTS / "node/orders/documents",
}
JAVA_IMPORTS = """\
import static test.momus.Word.*;
import static org.junit.jupiter.api.Assertions.*;

import java.util.*;
import test.momus.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;
import org.junit.jupiter.api.*;
"""


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and text of each block that is compiled."""
    text = (REPOSITORY / "docs" / page).read_text(encoding="utf-8")
    return [
        (found[1], found[2]) for found in re.finditer(r"^```(go|java|js)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def write(page: str, number: int, language: str, text: str) -> None:
    """One block, as a file of a suite: a package of its own in Go and Java, since two blocks may use one name."""
    name = f"{page.removesuffix('.md').replace('-', '')}{number}"
    folder = FOLDERS[language] if language == "js" else FOLDERS[language] / name
    file = f"{name}.spec.js" if text.startswith("// vitest\n") else f"{name}.test.js"
    if language == "go":
        file = f"{name}_test.go"
    elif language == "java":
        file = re.findall(r"^class (\w+)", text, re.MULTILINE)[0] + ".java"
        text = f"package documents.{name};\n\n{JAVA_IMPORTS}\n{text}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(text, encoding="utf-8")


def main() -> None:
    """Write them again. Errors: SystemExit: a language has none, as after its fences were written in another way."""
    for folder in FOLDERS.values():
        shutil.rmtree(folder, ignore_errors=True)
    for page in PAGES:
        for number, (language, text) in enumerate(blocks(page), 1):
            write(page, number, language, text)
    for language, folder in FOLDERS.items():
        if not folder.exists():
            raise SystemExit(f"no block of {language} in {', '.join(PAGES)}")


if __name__ == "__main__":
    main()
