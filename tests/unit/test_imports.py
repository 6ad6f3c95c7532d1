"""What an import loads: a fresh interpreter imports one package and lists the modules that came with it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pace_actors

HEAVY = frozenset({"click", "httpx", "numpy", "onnxruntime", "pykka", "rich", "sentencex", "tantivy"})


def modules_by(package: str) -> set[str]:
    """Modules that an import of `package` brings into a fresh interpreter."""
    code = f"import sys; before = set(sys.modules); import {package}; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def loaded_by(package: str) -> set[str]:
    """The same, at the top level."""
    return {name.partition(".")[0] for name in modules_by(package)}


@pytest.mark.parametrize(
    ("package", "absent"),
    [
        ("eventlog", HEAVY | {"pace_actors", "structlog"}),
        ("pace_actors", HEAVY | {"eventlog", "structlog"}),
        ("pace_actors.pace", {"click", "httpx", "numpy", "onnxruntime", "rich", "tantivy"}),
        ("pace_actors.replay", HEAVY - {"sentencex"} | {"structlog"}),
        ("pace_actors.engine", {"httpx", "numpy", "onnxruntime", "tantivy"}),
    ],
)
def test_an_import_is_light(package: str, absent: frozenset[str]) -> None:
    loaded = loaded_by(package)
    assert package.partition(".")[0] in loaded
    assert not loaded & absent


def test_every_name_of_the_package_is_found_where_it_is_at_home() -> None:
    for name in pace_actors.__all__:
        found = getattr(pace_actors, name)
        assert found.__name__ == name
        assert name in dir(pace_actors)
    with pytest.raises(AttributeError, match="Tempo"):
        _ = pace_actors.Tempo


def test_what_an_import_loads_is_seen() -> None:
    assert {"http", "email"} <= loaded_by("http.client")


def test_the_patterns_of_facts_are_compiled_when_they_are_used() -> None:
    """Goal: an import does not take half as long again for expressions that a program may never need."""
    folder = "pace_actors.domain.patterns"
    light = {folder, f"{folder}.names"}
    assert {name for name in modules_by("pace_actors.pace") if name.startswith(folder)} == light
    assert f"{folder}.table" in modules_by(f"{folder}.extracting")
