"""The table of docs/models.md and the tests that are marked with its topics name each other, without a rest."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Mapping

from tests.support.architecture import REPO_ROOT, read_sources

PAGE = REPO_ROOT / "docs" / "models.md"
SOCKETS = ("ModelServer", "LlmServer")
Topics = dict[str, set[str]]
"""Topic → names of tests."""


def in_table(page: str) -> Topics:
    """What the table says; a row has its topic first and its tests last."""
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in page.splitlines() if line[:2] == "| "]
    return {row[0]: set(re.findall(r"`(test_\w+)`", row[-1])) for row in cells if row[0] != "topic"}


def marked(sources: Mapping[str, str]) -> Topics:
    """What the marks say."""
    found: Topics = defaultdict(set)
    for text in sources.values():
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.FunctionDef):
                continue
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.quirk":
                    found[ast.literal_eval(mark.args[0])].add(node.name)
    return dict(found)


def test_every_row_has_its_tests_and_every_marked_test_its_row() -> None:
    table = in_table(PAGE.read_text(encoding="utf-8"))
    assert table == marked(read_sources("tests"))
    assert len(table) >= 8
    assert all(table.values())


def test_every_marked_test_stands_beside_a_real_server() -> None:
    for path, text in read_sources("tests").items():
        assert not marked({path: text}) or any(server in text for server in SOCKETS), path


def test_a_row_without_a_test_and_a_test_without_a_row_are_seen() -> None:
    page = "| topic | seen | tests |\n|---|---|---|\n| hangs | x | `test_a`, `test_b` |\n| lies | x | none |\n"
    source = '@pytest.mark.quirk("hangs")\ndef test_a(): ...\n@pytest.mark.quirk("new")\ndef test_c(): ...\n'
    assert in_table(page) == {"hangs": {"test_a", "test_b"}, "lies": set()}
    assert marked({"a.py": source}) == {"hangs": {"test_a"}, "new": {"test_c"}}
