"""From what a user gives as a model to a summariser, and what that loads."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from pace_actors.errors import InvalidInput, ModelNotAllowed
from pace_actors.models import BreakingSummariser, ScriptedSummariser, summariser_from
from pace_actors.models.extractive import ExtractiveSummariser


def test_nothing_is_the_extractive_summariser() -> None:
    assert isinstance(summariser_from(None), ExtractiveSummariser)


def test_an_address_is_a_chat_server_behind_a_breaker() -> None:
    summariser = summariser_from("http://127.0.0.1:8080/v1", model_name="small")
    assert isinstance(summariser, BreakingSummariser)
    assert summariser.name == "small at http://127.0.0.1:8080/v1"
    summariser.close()


def test_an_address_off_the_machine_must_be_allowed() -> None:
    with pytest.raises(ModelNotAllowed):
        summariser_from("https://models.example.com/v1")


def test_a_summariser_is_itself() -> None:
    scripted = ScriptedSummariser([])
    assert summariser_from(scripted) is scripted


@pytest.mark.parametrize("model", ["", "small", 7, object(), ScriptedSummariser])
def test_anything_else_is_refused(model: Any) -> None:
    with pytest.raises(InvalidInput):
        summariser_from(model)


@pytest.mark.parametrize("statement", ["import pace_actors.models", "import pace_actors"])
def test_httpx_and_structlog_are_not_loaded_by_an_import_alone(statement: str) -> None:
    check = f"{statement}; import sys; print(sorted({{'httpx', 'httpcore', 'structlog'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip() == "[]"
