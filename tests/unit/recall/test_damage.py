"""R3 for the index itself: whatever happens to its directory, it answers, says what is wrong, and comes back."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pace_actors.recall import generations
from pace_actors.recall.port import GROUPS, IndexLocked, IndexStartedOver, IndexUnusable, Query
from pace_actors.recall.tantivy_index import TantivyIndex
from tests.support.skips import LINUX_ONLY, POSIX_ONLY
from tests.unit.recall.contract import ask, entry, turn

ENTRIES = [entry("1", "red tulips"), entry("2", "white roses"), *turn(1, "I like tulips", "Which ones?")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture
def stored(root: Path) -> Path:
    """The directory of a whole generation at position 5."""
    index = TantivyIndex(root)
    index.add(ENTRIES)
    assert index.commit(5) == 5
    index.close()
    (directory,) = root.iterdir()
    return directory


def feed(index: TantivyIndex, position: int = 5) -> None:
    """What a follower does: everything again, from where the index says."""
    assert index.start() == 0
    index.add(ENTRIES)
    assert index.commit(position) == position


def segment(directory: Path, ending: str) -> Path:
    return next(path for path in sorted(directory.iterdir()) if path.name.endswith(ending))


def put(path: Path, content: bytes) -> None:
    """Another file in its place; cutting one that is mapped into memory would end the process, as for any program."""
    path.unlink()
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "meta.json is gone": lambda one: (one / "fact" / "meta.json").unlink(),
    "meta.json of the checkpoint is gone": lambda one: (one / "checkpoint" / "meta.json").unlink(),
    "meta.json is empty": lambda one: put(one / "user" / "meta.json", b""),
    "meta.json is garbage": lambda one: put(one / "user" / "meta.json", b"{}"),
    "a segment is gone": lambda one: segment(one / "fact", ".term").unlink(),
    "a store is gone": lambda one: segment(one / "fact", ".store").unlink(),
    "an empty segment": lambda one: put(segment(one / "user", ".idx"), b""),
    "a segment of zeros": lambda one: put(segment(one / "user", ".term"), bytes(200)),
    "a group is gone": lambda one: shutil.rmtree(one / "assistant"),
    "another schema": lambda one: one.rename(one.with_name("index-v0-0001")),
    "everything is gone": shutil.rmtree,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_index_starts_over_beside_and_says_why(damage: str, root: Path, stored: Path) -> None:
    DAMAGES[damage](stored)
    index = TantivyIndex(root)
    assert (index.position, len(index), index.start()) == (0, 0, 0)
    if damage != "everything is gone":
        assert index.trouble
        assert index.search(Query(text="tulips")).notes == (index.trouble,)
    index.add(ENTRIES)
    assert sorted(ask(index, "tulips")) == ["1", "t/1/user"], "what is pending is found"
    assert index.commit(5) == 5
    assert sorted(ask(index, "tulips")) == ["1", "t/1/user"]
    assert index.trouble == ""
    assert [path.name for path in root.iterdir()] == [index.directory.name], "what was damaged is removed"
    index.close()
    again = TantivyIndex(root)
    assert (again.position, len(again), again.trouble) == (5, 4, "")
    again.close()


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_while_it_is_open_is_found_by_the_next_commit_at_the_latest(
    damage: str, root: Path, stored: Path
) -> None:
    index = TantivyIndex(root)
    DAMAGES[damage](stored)
    assert ask(index, "tulips") in (["1", "t/1/user"], ["t/1/user", "1"], [])
    index.add([entry("3", "yellow tulips"), *turn(2, "One more", "Yes")])
    assert "3" in ask(index, "tulips")
    try:
        index.commit(6)
    except IndexStartedOver:
        with pytest.raises(IndexStartedOver):
            index.commit(7)
        assert "3" in ask(index, "yellow tulips"), "what was pending still is"
        feed(index, 6)
    except IndexUnusable:
        assert index.commit(6) == 6
    index.close()
    again = TantivyIndex(root)
    if again.position == 0:
        feed(again, 6)
        again.add([entry("3", "yellow tulips")])
        again.commit(6)
    assert (again.position, sorted(ask(again, "tulips"))) == (6, ["1", "3", "t/1/user"])
    again.close()


@pytest.mark.usefixtures("stored")
def test_an_index_that_is_written_by_somebody_else_is_searched_and_written_later(root: Path) -> None:
    other = generations.newest(root)
    assert other is not None
    held = [other.groups[group].writer(15_000_000, 1) for group in GROUPS]
    index = TantivyIndex(root)
    index.add([entry("3", "yellow tulips")])
    for _ in range(3):
        with pytest.raises(IndexLocked):
            index.commit(6)
        assert sorted(ask(index, "tulips")) == ["1", "3", "t/1/user"]
        assert (index.position, index.pending) == (5, 1)
        assert index.trouble
    held.clear()
    assert index.commit(6) == 6
    assert index.trouble == ""
    assert sorted(ask(index, "tulips")) == ["1", "3", "t/1/user"]
    index.close()


def test_a_place_that_cannot_be_made_is_tried_again(root: Path) -> None:
    root.write_text("a file where the directory should be")
    index = TantivyIndex(root)
    assert index.trouble
    index.add(ENTRIES)
    assert len(ask(index, "tulips")) == 2
    with pytest.raises(IndexUnusable):
        index.commit(5)
    assert (index.position, index.pending) == (0, 4)
    root.unlink()
    assert index.commit(5) == 5
    assert (index.trouble, len(ask(index, "tulips"))) == ("", 2)
    index.close()


@pytest.mark.usefixtures("stored")
def test_a_commit_that_fails_half_way_stores_nothing_twice(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The groups are written one after the other: break it before each, and before the checkpoint."""
    for name in (*GROUPS, "checkpoint"):
        index = TantivyIndex(root)
        position = index.position
        index.add([entry("1", f"red tulips {name}"), entry("9", "a fact", kind="document"), *turn(1, "tulips!", "Ah.")])
        whole = index._writer

        def broken(group: str, one: Any, name: str = name, whole: Any = whole) -> Any:
            if group == name:
                raise OSError("no space left on device")
            return whole(group, one)

        monkeypatch.setattr(index, "_writer", broken)
        with pytest.raises(IndexUnusable):
            index.commit(position + 1)
        assert (index.position, index.pending) == (position, 4)
        assert sorted(ask(index, "tulips")) == ["1", "t/1/user"]
        monkeypatch.setattr(index, "_writer", whole)
        assert index.commit(position + 1) == position + 1
        assert sorted(ask(index, "tulips")) == ["1", "t/1/user"]
        assert len(index) == 5
        index.close()


@pytest.mark.parametrize("fails", [False, True])
def test_what_comes_while_a_commit_is_under_way_is_newer_whether_it_succeeds_or_fails(
    root: Path, monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    index = TantivyIndex(root)
    index.add([entry("a", "tulips one"), entry("b", "tulips two"), entry("c", "tulips three")])
    reached, go_on = threading.Event(), threading.Event()
    whole = index._writer

    def slow(group: str, one: Any) -> Any:
        reached.set()
        assert go_on.wait(30)
        if fails:
            raise OSError("no space left on device")
        return whole(group, one)

    monkeypatch.setattr(index, "_writer", slow)
    raised: list[BaseException] = []

    def commit() -> None:
        try:
            index.commit(1)
        except IndexUnusable as error:
            raised.append(error)

    def found() -> dict[str, str]:
        return {hit.entry.id: hit.entry.text for hit in index.search(Query(text="tulips")).hits}

    thread = threading.Thread(target=commit)
    thread.start()
    assert reached.wait(30)
    index.add([entry("a", "tulips four")])
    index.delete(["b"])
    texts = {"a": "tulips four", "c": "tulips three"}
    assert found() == texts
    go_on.set()
    thread.join(30)
    assert bool(raised) == fails
    assert found() == texts
    monkeypatch.setattr(index, "_writer", whole)
    index.commit(2)
    assert found() == texts
    assert len(index) == 2
    index.close()


@pytest.mark.usefixtures("stored")
def test_what_is_discarded_is_in_no_file(root: Path) -> None:
    index = TantivyIndex(root)
    index.add([entry("canary", "Zq7xKv3jWp"), entry("other", "of the same segment")])
    index.commit(6)
    index.delete(["canary"])
    index.commit(7)
    assert _holds(root, b"Zq7xKv3jWp"), "deleted, and still there"
    index.discard()
    assert not _holds(root, b"Zq7xKv3jWp")
    index.close()


def _holds(root: Path, text: bytes) -> bool:
    return any(text in path.read_bytes() for path in root.rglob("*") if path.is_file())


@pytest.mark.skipif("not __import__('sys').platform.startswith('linux')", reason=LINUX_ONLY)
@pytest.mark.usefixtures("stored")
def test_a_full_disk_is_told_and_waited_out(root: Path) -> None:
    """By the size limit of files, which tantivy meets as it would a full disk."""
    import resource

    index = TantivyIndex(root)
    index.add([entry("3", "yellow tulips " + "word " * 50_000)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        with pytest.raises(IndexUnusable):
            index.commit(6)
        assert sorted(ask(index, "tulips")) == ["1", "3", "t/1/user"]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    if index._started_over:
        feed(index)
    assert index.commit(6) == 6
    assert sorted(ask(index, "tulips")) == ["1", "3", "t/1/user"]
    index.close()


@pytest.mark.skipif("__import__('os').name != 'posix'", reason=POSIX_ONLY)
@pytest.mark.usefixtures("stored")
def test_two_openings_of_one_directory_do_not_harm_each_other(root: Path) -> None:
    first, second = TantivyIndex(root), TantivyIndex(root)
    first.add([entry("3", "yellow tulips")])
    first.commit(6)
    second.add([entry("4", "blue tulips")])
    with pytest.raises(IndexLocked):
        second.commit(6)
    first.close()
    assert second.commit(7) == 7
    assert sorted(ask(second, "tulips")) == ["1", "3", "4", "t/1/user"]
    second.close()
