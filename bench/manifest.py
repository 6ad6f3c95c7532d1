"""What a bench ran on. Names no host, no user and no path."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = (
    "lmdb",
    "msgspec",
    "pykka",
    "httpx",
    "regex",
    "sentencex",
    "structlog",
    "tantivy",
    "numpy",
    "eventsourcing",
)


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a figure depends on, as far as a program can see it."""

    taken_at: str
    machine: str
    cpu: str
    cpu_count: int
    system: str
    python: str
    libraries: dict[str, str]
    """Name → version of those that are installed."""
    commit: str
    dirty: bool | None
    """Whether the tree differed from the commit; None where that is unknown."""
    durability: str
    """Mode of the log, `durable` or `relaxed`; `none` where nothing is written to disk."""
    file_system: str
    """Type of the file system under the bench's data."""
    seed: int

    def line(self) -> str:
        """The short form for beneath a table."""
        dirty = "" if self.dirty is False else ", changed since" if self.dirty else ", state unknown"
        return (
            f"{self.cpu}, {self.cpu_count} CPUs; {self.system}; Python {self.python}; {self.file_system}; "
            f"mode {self.durability}; seed {self.seed}; commit {self.commit[:10]}{dirty}; {self.taken_at[:10]}"
        )


def take_manifest(data: Path, *, durability: str, seed: int) -> Manifest:
    """The manifest of a run whose files lie in `data`."""
    commit = _git("rev-parse", "HEAD")
    status = _git("status", "--porcelain", "--", ".", ":!bench/results", ":!README.md")
    return Manifest(
        taken_at=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=platform.machine(),
        cpu=_cpu_name(),
        cpu_count=os.cpu_count() or 0,
        system=f"{platform.system()} {platform.release()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        libraries=_versions(LIBRARIES),
        commit=commit or "unknown",
        dirty=None if status is None else bool(status),
        durability=durability,
        file_system=file_system_type(data),
        seed=seed,
    )


def file_system_type(place: Path) -> str:
    """Type of the file system that holds `place`, `ext4` say; `unknown` where the system does not tell."""
    mounts = Path("/proc/self/mounts")
    if mounts.exists():
        return _type_among(mounts.read_text(encoding="utf-8", errors="replace"), place.resolve())
    if sys.platform == "darwin":
        done = subprocess.run(["/usr/bin/stat", "-f", "%T", str(place)], capture_output=True, text=True, check=False)
        return done.stdout.strip() or "unknown"
    return "unknown"


def _type_among(mounts: str, place: Path) -> str:
    best, found = -1, "unknown"
    for line in mounts.splitlines():
        _, mounted, kind, *_ = line.split(" ")
        folder = Path(mounted.replace("\\040", " "))
        if place.is_relative_to(folder) and len(folder.parts) >= best:  # a later mount hides an earlier one
            best, found = len(folder.parts), kind
    return found


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _versions(names: Sequence[str]) -> dict[str, str]:
    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
