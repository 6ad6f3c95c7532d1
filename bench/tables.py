"""Writes the tables of README.md and of pages in docs/ from bench/results, between their marks.

A mark is `<!-- bench:NAME -->`, and ends with its close. `--check` writes nothing and exits 1 where the tables are not
those of the results.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from bench.harness import RESULTS, read_report
from bench.manifest import ROOT
from bench.pictures import DOCS, pictures
from bench.racing.report import read_races

README = ROOT / "README.md"
RACES = ROOT / "docs" / "races.md"
EVENTLOG = ROOT / "docs" / "eventlog.md"
INSPECT = ROOT / "docs" / "inspect.md"
DEBUGGING = ROOT / "docs" / "debugging.md"
PAGES = (README, EVENTLOG, RACES, INSPECT, DEBUGGING)
_OPEN = re.compile(r"^<!-- bench:(?P<name>[\w-]+) -->$")
_CLOSE = "<!-- /bench -->"


class BadMark(Exception):
    """A mark that is not closed, not opened, or names a report that is not there."""


def render(text: str, results: Path) -> str:
    """`text` with everything between marks replaced by the tables of the reports that they name. Raises `BadMark`."""
    out: list[str] = []
    inside = ""
    for line in text.split("\n"):
        mark = _OPEN.match(line)
        if inside and mark:
            raise BadMark(f"the mark of {inside!r} is not closed before that of {mark['name']!r}")
        if not inside or line == _CLOSE:
            out.append(line)
        if line == _CLOSE:
            if not inside:
                raise BadMark(f"{_CLOSE} closes nothing")
            inside = ""
        elif mark:
            inside = mark["name"]
            out += ["", _table(inside, results), ""]
    if inside:
        raise BadMark(f"the mark of {inside!r} is not closed")
    return "\n".join(out)


def _table(name: str, results: Path) -> str:
    if name.startswith("races-"):
        tables = read_races(results / "races.json").tables()
        if name not in tables:
            raise BadMark(f"no table {name!r} in races.json; there are {', '.join(tables)}")
        return tables[name]
    place = results / f"{name}.json"
    if not place.exists():
        raise BadMark(f"no report {name!r} in the results; make it with: python -m bench.{name} --publish")
    return read_report(place).table()


def generated(results: Path) -> dict[Path, str]:
    """What is made of the reports: pages with their tables, and pictures. Raises `BadMark`."""
    pages = {page: render(page.read_text(encoding="utf-8") if page.exists() else "", results) for page in PAGES}
    return pages | {DOCS / name: svg for name, svg in pictures(results).items()}


def main(arguments: list[str]) -> int:
    """Write in place, or compare."""
    stale = 0
    for place, text in generated(RESULTS).items():
        if place.exists() and place.read_text(encoding="utf-8") == text:
            continue
        if "--check" in arguments:
            print(f"{place.name} is not what bench/results say; run: make docs", file=sys.stderr)
            stale = 1
        else:
            place.write_text(text, encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
