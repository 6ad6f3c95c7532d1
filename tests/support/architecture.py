"""Reads the packages without importing them, and says what breaks the rules of the house.

Every check takes sources (path → text) and returns its findings as sentences, so that each can be tried on a bad one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

REPO_ROOT = Path(__file__).resolve().parents[2]
Sources = Mapping[str, str]

MODULE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70

_BASE = frozenset({"errors", "values", "settings", "events", "messages"})
_DOMAIN = _BASE | {"domain"}
_WORK = _DOMAIN | {"models", "runtime", "recall", "mirror"}
_FACE_PARTS = _WORK | {
    "actors", "engine", "core", "finder", "lease", "thread", "fact_verbs", "recall_verbs", "opening",
}  # fmt: skip
_FACE = _WORK | {"finder", "opening", "actors", "engine", "core", "thread", "fact_verbs", "pace", "async_pace"}

LAYERS: dict[str, frozenset[str]] = {
    "errors": frozenset(),
    "values": frozenset({"errors"}),
    "settings": frozenset({"errors", "values"}),
    "events": frozenset({"errors", "values", "settings"}),
    "messages": frozenset({"errors", "values", "settings", "events", "domain"}),
    "domain": _BASE - {"messages"},
    "models": _DOMAIN,
    "runtime": _DOMAIN,
    "recall": _DOMAIN | {"models"},  # an embedder is asked there
    "mirror": _DOMAIN,
    "actors": _WORK,
    "simulation": _WORK | {"actors", "engine"},
    "engine": _WORK | {"actors"},
    "finder": _WORK,
    "contexts": _WORK | {"engine", "finder"},
    "core": _WORK | {"actors", "engine", "finder", "contexts"},
    "lease": _WORK | {"actors", "engine", "core"},
    "thread": _WORK | {"actors", "engine", "core", "lease"},
    "fact_verbs": _WORK | {"core"},
    "recall_verbs": _WORK | {"core", "finder"},
    "opening": _WORK | {"actors", "core", "engine"},
    "pace": _FACE_PARTS,
    "async_pace": _FACE_PARTS | {"pace"},
    "replay": _DOMAIN | {"recall"},  # what an index found of an event is a function of the log
    "importing": _FACE,
    "cli": _FACE | {"simulation", "replay", "importing"},
    "": _FACE,  # the package's own __init__
}
"""Part of pace_actors → the other parts that it may import."""

OF_THE_LOG_ALONE = frozenset(
    f"pace_actors.recall.{name}" for name in ("analysis", "entries", "feed", "port", "scoring", "snippet")
)
"""What of recall asks no index and no model: replay may import it, and it imports nothing else of recall itself."""

NOT_IN_DOMAIN = frozenset({
    "asyncio", "concurrent", "multiprocessing", "os", "pathlib", "queue", "random", "secrets", "socket", "subprocess",
    "tempfile", "threading", "time", "uuid",
})  # fmt: skip


def read_sources(*folders: str, root: Path = REPO_ROOT) -> dict[str, str]:
    """Path, relative to the project, → text of every Python file below these folders."""
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for folder in folders
        for path in sorted((root / folder).rglob("*.py"))
    }


def module_name(path: str) -> str:
    """`a/b.py` → `a.b`, `a/__init__.py` → `a`.

    >>> module_name("pace_actors/domain/__init__.py")
    'pace_actors.domain'
    """
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported(path: str, text: str, modules: frozenset[str] = frozenset()) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a file imports: at its top, inside functions, and for types only.

    `from a import b` is an import of `a.b` where `modules` knows that name, else of `a`.
    """
    for node in ast.walk(ast.parse(text, path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            origin = _absolute(path, node)
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                yield node.lineno, inner if inner in modules else origin
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__") and node.args:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield node.lineno, name.value


def _absolute(path: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    folders = path.split("/")[: -node.level]
    return ".".join([*folders, *([node.module] if node.module else [])])


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _part(module: str) -> str:
    return module.partition(".")[2].partition(".")[0]


def layer_breaks(sources: Sources) -> list[str]:
    """Imports that point up or sideways, and parts of pace_actors that nobody has given a place."""
    modules = frozenset(map(module_name, sources))
    found = []
    for path, text in sources.items():
        module = module_name(path)
        package, part = module.split(".")[0], _part(module)
        if package == "pace_actors" and part not in LAYERS:
            found.append(f"{path}: {part!r} has no layer; give it one in LAYERS")
            continue
        for line, name in dict.fromkeys(imported(path, text, modules)):  # `from a import b, c` is one import of a
            if name.split(".")[0] != "pace_actors":
                continue
            other = _part(name)
            outside = package != "pace_actors" or (other != part and other not in LAYERS[part])
            if outside or _asks_more(module, part, name, other):
                found.append(f"{path}:{line}: {part or package} must not import {name}")
    return found


def _asks_more(module: str, part: str, name: str, other: str) -> bool:
    """Whether what depends on the log alone would see an index, or a model that is asked for vectors."""
    if part == "replay":
        return other == "recall" and name not in OF_THE_LOG_ALONE
    return module in OF_THE_LOG_ALONE and (other == "models" or (other == "recall" and name not in OF_THE_LOG_ALONE))


def domain_breaks(sources: Sources) -> list[str]:
    """Ways by which the pure rules could see a clock, chance, the environment or another thread."""
    found = []
    for path, text in sources.items():
        if not path.startswith("pace_actors/domain/"):
            continue
        for line, name in imported(path, text):
            if name.split(".")[0] in NOT_IN_DOMAIN:
                found.append(f"{path}:{line}: domain must not import {name}")
        found += [
            f"{path}:{node.lineno}: domain must not call {_called(node)}()"
            for node in ast.walk(ast.parse(text, path))
            if isinstance(node, ast.Call) and _called(node) in ("now", "utcnow", "today", "open")
        ]
    return found


def import_cycle(sources: Sources) -> list[str]:
    """The modules of one import cycle, in order; empty where there is none."""
    modules = frozenset(map(module_name, sources))
    graph = {
        module_name(path): sorted({name for _, name in imported(path, text, modules) if name in modules})
        for path, text in sources.items()
    }
    done: set[str] = set()
    for start in graph:
        cycle = _cycle_from(start, graph, [], done)
        if cycle:
            return cycle
    return []


def _cycle_from(module: str, graph: Mapping[str, Sequence[str]], trail: list[str], done: set[str]) -> list[str]:
    if module in trail:
        return [*trail[trail.index(module) :], module]
    if module in done:
        return []
    for other in graph[module]:
        cycle = _cycle_from(other, graph, [*trail, module], done)
        if cycle:
            return cycle
    done.add(module)
    return []


def write_transactions(sources: Sources) -> list[str]:
    """Begins of a write transaction outside `eventlog/lmdb/commit.py`: `write=` anything but False, or by place."""
    found = []
    for path, text in sources.items():
        if path == "eventlog/lmdb/commit.py":
            continue
        for node in ast.walk(ast.parse(text, path)):
            if not isinstance(node, ast.Call):
                continue
            named = [word.value for word in node.keywords if word.arg == "write"]
            placed = node.args[2:3] if _called(node) in ("begin", "Transaction") else []
            if any(not (isinstance(value, ast.Constant) and value.value is False) for value in [*named, *placed]):
                found.append(f"{path}:{node.lineno}: only eventlog/lmdb/commit.py begins a write transaction")
    return found


def event_names(sources: Sources) -> tuple[list[str], list[str]]:
    """Names given to `@event` and `REGISTRY.register`, in order, and the findings where one is not a literal."""
    names: list[str] = []
    found = []
    for path, text in sources.items():
        tree = ast.parse(text, path)
        inside = {
            id(call)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and node.name == "event"
            for call in ast.walk(node)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or id(node) in inside or not _names_an_event(node):
                continue
            name = node.args[0] if node.args else None
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                names.append(name.value)
            else:
                found.append(f"{path}:{node.lineno}: the stored name of an event is a literal, chosen by hand")
    return names, found


def _names_an_event(node: ast.Call) -> bool:
    return ast.unparse(node.func) in ("event", "events.event", "REGISTRY.register", "events.REGISTRY.register")


def oversize(sources: Sources) -> list[str]:
    """Modules and functions that have grown too long to be read in one go."""
    found = []
    for path, text in sources.items():
        lines = len(text.splitlines())
        if lines > MODULE_LINES_MAX:
            found.append(f"{path}: {lines} lines, at most {MODULE_LINES_MAX}")
        for node in ast.walk(ast.parse(text, path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                told = ast.get_docstring(node) is not None and len(node.body) > 1  # what is told is no code
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                length -= node.body[1].lineno - node.body[0].lineno if told else 0
                if length > FUNCTION_LINES_MAX:
                    found.append(f"{path}:{node.lineno}: {node.name} has {length} lines, at most {FUNCTION_LINES_MAX}")
    return found


def prints(sources: Sources) -> list[str]:
    """Calls of `print` outside the command lines."""
    return [
        f"{path}:{node.lineno}: only the command line prints"
        for path, text in sources.items()
        if not path.startswith(("pace_actors/cli/", "eventlog/cli.py"))
        for node in ast.walk(ast.parse(text, path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def undescribed(sources: Sources) -> list[str]:
    """Modules without a docstring."""
    return [f"{path}: no docstring" for path, text in sources.items() if not ast.get_docstring(ast.parse(text, path))]


def sleepers(sources: Sources) -> set[str]:
    """Files that use `time.sleep`, under whatever name."""
    found = set()
    for path, text in sources.items():
        for node in ast.walk(ast.parse(text, path)):
            if isinstance(node, ast.ImportFrom) and node.module == "time":
                uses = any(alias.name == "sleep" for alias in node.names)
            else:
                uses = isinstance(node, ast.Attribute) and ast.unparse(node) == "time.sleep"
            if uses:
                found.add(path)
    return found
