"""How a directory is opened: what was chosen, and from it the models, the log and the index, or none of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import msgspec

import eventlog
from pace_actors.actors.services import TokenCounter
from pace_actors.core import Core
from pace_actors.engine import Options
from pace_actors.errors import InvalidInput, InvalidSetting
from pace_actors.events import REGISTRY
from pace_actors.models.choose import Models, embedder_from, models_from
from pace_actors.models.port import Embedder, Summariser
from pace_actors.recall.port import Profile
from pace_actors.settings import MEANINGS
from pace_actors.values import one_of

if TYPE_CHECKING:
    from pace_actors.recall.port import SearchIndex

RECALL_FOLDER: Final = "recall"
"""In the directory of the log. It can be deleted at any time."""


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """What is opened, besides the options that every engine has."""

    model: str | Summariser | Models | None = None
    model_name: str = ""
    api_key: str | None = None
    allow_remote_model: bool = False
    mode: Literal["durable", "relaxed"] = "durable"
    recall: bool = True
    embedder: str | Embedder | None = None
    embedder_name: str = ""
    logger: Any = None
    """As it was given."""

    def told(self, options: Options) -> dict[str, Any]:
        """By name what has to be the same when the directory is opened again in this process."""
        chosen = {name: getattr(self, name) for name in self.__struct_fields__ if name != "allow_remote_model"}
        return chosen | {name: getattr(options, name) for name in options.__struct_fields__ if name not in chosen}


def place_of(path: str | PathLike[str]) -> str:
    """The path as text. Raises `InvalidInput` for what names no directory: bytes do so to the system, but not to us."""
    place: object = os.fspath(path)
    if not isinstance(place, str) or not place or "\0" in place:
        raise InvalidInput(f"path={path!r} names no directory", what="path")
    return place


def check_names(settings: Mapping[str, Any], options: Iterable[str]) -> None:
    """Raise `InvalidSetting` for a name that is neither a setting of threads nor an option, with what may be meant."""
    for name in settings:
        if name not in MEANINGS:
            known = [*MEANINGS, *options]
            import difflib  # noqa: PLC0415 - only for who mistypes

            meant = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {meant[0]!r}?" if meant else f"there are {', '.join(known)}"
            raise InvalidSetting(f"there is no option or setting {name!r}; {hint}", name=name, value=settings[name])


def check_identity(identity: object) -> str:
    """`identity`, if it is text. Raises `InvalidInput`."""
    if not isinstance(identity, str):
        raise InvalidInput(f"identity is text, not {type(identity).__name__}", what="identity")
    return identity


def check_counter(token_counter: TokenCounter | None) -> TokenCounter | None:
    """`token_counter`, if it can be called or is none. Raises `InvalidInput`."""
    if token_counter is not None and not callable(token_counter):
        raise InvalidInput("token_counter is called with a text and gives a number", what="token_counter")
    return token_counter


def profile_of(profile: Profile | None, embedder: object, usual: Profile) -> Profile:
    """The profile that is meant; without an embedder `lexical`. Raises `InvalidInput` for one that needs one."""
    if profile is None:
        return usual if embedder is not None else "lexical"
    if one_of("profile", profile, get_args(Profile)) != "lexical" and embedder is None:
        raise InvalidInput(f"profile={profile!r} needs an embedder", what="profile")
    return profile


def opened(place: str, choices: Choices, options: Options) -> Core:
    """Models, log and index, or none of them."""
    models = models_from(
        choices.model,
        model_name=choices.model_name,
        api_key=choices.api_key,
        allow_remote=choices.allow_remote_model,
        logger=options.logger,
    )
    with contextlib.ExitStack() as undo:
        undo.callback(models.close)
        embedder = _embedder_of(choices, options)
        if embedder is not None:
            undo.callback(embedder.close)
        log = eventlog.open(place, REGISTRY, mode=choices.mode)
        undo.callback(log.close)
        index = _index_of(place) if choices.recall else None
        if index is not None:
            undo.callback(index.close)
        leftover = None if choices.recall else partial(_delete_index, Path(place) / RECALL_FOLDER)
        core = Core(log, models, options, index, embedder, leftover)
        warm = getattr(embedder, "warm", None)
        if warm is not None:
            warm()
        undo.pop_all()
    return core


def _embedder_of(choices: Choices, options: Options) -> Embedder | None:
    if choices.embedder is not None and not choices.recall:
        raise InvalidInput("an embedder is of no use with recall=False: leave out one of them", what="embedder")
    return embedder_from(
        choices.embedder,
        model_name=choices.embedder_name,
        api_key=choices.api_key if choices.embedder == choices.model else None,
        allow_remote=choices.allow_remote_model,
        logger=options.logger,
    )


def _index_of(place: str) -> SearchIndex:
    from pace_actors.recall.tantivy_index import TantivyIndex  # noqa: PLC0415 - loads the search engine

    return TantivyIndex(Path(place) / RECALL_FOLDER)


def _delete_index(folder: Path) -> None:
    """One that was left by an open with recall, and may hold what is erased. The next such open makes it again."""
    if folder.exists():
        import shutil  # noqa: PLC0415 - it loads three ways to compress

        shutil.rmtree(folder)
