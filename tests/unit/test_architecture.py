"""The rules of the house hold in every file, and each check is shown to find what it looks for."""

from __future__ import annotations

import pytest

from tests.support import architecture as rules

PACKAGES = rules.read_sources("eventlog", "pace_actors")
TESTS = rules.read_sources("tests")

SLEEPERS: dict[str, str] = {}
"""Test file → why it has to let real time pass. Everything else waits for an event, or on a clock of its own."""


def test_the_files_are_found() -> None:
    assert {"eventlog/types.py", "pace_actors/events.py", "pace_actors/domain/__init__.py"} <= set(PACKAGES)
    assert "tests/unit/test_architecture.py" in TESTS


# === the house ========================================================================================================


def test_imports_point_one_way() -> None:
    assert rules.layer_breaks(PACKAGES) == []


def test_domain_has_no_clock_no_chance_no_environment_no_threads() -> None:
    assert rules.domain_breaks(PACKAGES) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert rules.import_cycle(PACKAGES) == []


def test_only_commit_begins_a_write_transaction() -> None:
    assert rules.write_transactions(PACKAGES) == []


def test_stored_event_names_are_literals() -> None:
    from pace_actors.events import REGISTRY

    names, found = rules.event_names(rules.read_sources("pace_actors"))
    assert found == []
    assert sorted(names) == sorted(REGISTRY.names)


def test_modules_and_functions_can_be_read_in_one_go() -> None:
    assert rules.oversize(PACKAGES) == []


def test_only_the_command_line_prints() -> None:
    assert rules.prints(PACKAGES) == []


def test_every_module_says_what_it_is() -> None:
    assert rules.undescribed(PACKAGES) == []


def test_no_test_lets_real_time_pass_without_saying_why() -> None:
    assert rules.sleepers(TESTS) == set(SLEEPERS)


# === the checks themselves ============================================================================================


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("eventlog/x.py", "from pace_actors import values"),
        ("eventlog/x.py", "import pace_actors.values"),
        ("pace_actors/values.py", "from pace_actors.settings import ThreadSettings"),
        ("pace_actors/domain/x.py", "from pace_actors.models.port import Model"),
        ("pace_actors/models/x.py", "from pace_actors.runtime import port"),
        ("pace_actors/models/x.py", "from ..runtime import port"),
        ("pace_actors/models/x.py", "def f():\n    import pace_actors.runtime"),
        ("pace_actors/models/x.py", "if TYPE_CHECKING:\n    from pace_actors.runtime import port"),
        ("pace_actors/models/x.py", "importlib.import_module('pace_actors.runtime')"),
        ("pace_actors/runtime/x.py", "from pace_actors.actors import thread"),
        ("pace_actors/actors/x.py", "from pace_actors.pace import Pace"),
        ("pace_actors/actors/x.py", "from pace_actors import Pace"),
        ("pace_actors/simulation/x.py", "from pace_actors.pace import Pace"),
        ("pace_actors/replay/x.py", "from pace_actors.models import port"),
        ("pace_actors/replay/x.py", "from pace_actors.recall.tantivy_index import TantivyIndex"),
        ("pace_actors/recall/feed.py", "from pace_actors.recall.vectors import Vectors"),
        ("pace_actors/recall/snippet.py", "from pace_actors.models import port"),
        ("pace_actors/engine.py", "from pace_actors.pace import Pace, Thread"),
        ("pace_actors/pace.py", "import pace_actors.cli"),
        ("pace_actors/novelty.py", "pass"),
    ],
)
def test_an_import_that_points_up_is_found(path: str, line: str) -> None:
    assert len(rules.layer_breaks({path: line, "pace_actors/runtime/__init__.py": ""})) == 1


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("pace_actors/values.py", "from eventlog import Text"),
        ("pace_actors/domain/x.py", "from pace_actors.domain import y"),
        ("pace_actors/actors/x.py", "from ..domain import thread"),
        ("pace_actors/cli/x.py", "from pace_actors.replay import fold"),
        ("pace_actors/replay/x.py", "from pace_actors.recall.feed import change_of"),
        ("pace_actors/__init__.py", "from pace_actors.pace import Pace"),
    ],
)
def test_an_import_that_points_down_is_allowed(path: str, line: str) -> None:
    assert rules.layer_breaks({path: line}) == []


@pytest.mark.parametrize(
    "line", ["import time", "from os import path", "import concurrent.futures", "datetime.now()", "open('x')"]
)
def test_an_impure_rule_is_found(line: str) -> None:
    assert len(rules.domain_breaks({"pace_actors/domain/x.py": f"def f():\n    {line}"})) == 1
    assert rules.domain_breaks({"pace_actors/runtime/x.py": line}) == []


def test_a_circle_is_found() -> None:
    circle = {"a/__init__.py": "", "a/b.py": "from a import c", "a/c.py": "def f():\n    from a.d import x"}
    assert rules.import_cycle(circle | {"a/d.py": ""}) == []
    assert rules.import_cycle(circle | {"a/d.py": "import a.b"}) == ["a.b", "a.c", "a.d", "a.b"]
    assert rules.import_cycle({"a/__init__.py": "from a.b import x", "a/b.py": "from a import y"}) == ["a", "a.b", "a"]


@pytest.mark.parametrize("call", ["env.begin(write=True)", "env.begin(write=flag)", "env.begin(None, None, True)"])
def test_a_second_writer_is_found(call: str) -> None:
    assert len(rules.write_transactions({"eventlog/erase.py": call})) == 1
    assert rules.write_transactions({"eventlog/lmdb/commit.py": call}) == []


def test_a_read_transaction_is_allowed() -> None:
    assert rules.write_transactions({"eventlog/erase.py": "env.begin()\nenv.begin(db, write=False)"}) == []


@pytest.mark.parametrize(
    "line", ["@event(NAME)\nclass A: ...", "@event()\nclass A: ...", "REGISTRY.register(A.__name__, A)"]
)
def test_a_name_that_is_not_a_literal_is_found(line: str) -> None:
    names, found = rules.event_names({"pace_actors/events.py": line + "\n@event('B')\nclass B: ..."})
    assert (names, len(found)) == (["B"], 1)


def test_what_is_too_long_is_found() -> None:
    def function(lines: int) -> str:
        return "def f():\n" + "    pass\n" * (lines - 1)

    assert rules.oversize({"a.py": function(rules.FUNCTION_LINES_MAX)}) == []
    assert len(rules.oversize({"a.py": "async " + function(rules.FUNCTION_LINES_MAX + 1)})) == 1
    assert rules.oversize({"a.py": "\n" * rules.MODULE_LINES_MAX}) == []
    assert len(rules.oversize({"a.py": "\n" * (rules.MODULE_LINES_MAX + 1)})) == 1


def test_a_print_is_found() -> None:
    assert len(rules.prints({"eventlog/x.py": "def f():\n    print('x')"})) == 1
    assert rules.prints({"pace_actors/cli/x.py": "print('x')", "eventlog/x.py": "'print(1)'; console.print(1)"}) == []


def test_a_module_without_a_docstring_is_found() -> None:
    assert len(rules.undescribed({"a.py": "x = 1", "b.py": '"""B."""'})) == 1


@pytest.mark.parametrize("line", ["time.sleep(1)", "from time import sleep as rest", "patch(nap=time.sleep)"])
def test_a_sleeper_is_found(line: str) -> None:
    assert rules.sleepers({"tests/a.py": line, "tests/b.py": "asyncio.sleep(0)  # not time.sleep"}) == {"tests/a.py"}
