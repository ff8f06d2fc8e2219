"""The import graph of the packages, read from their sources, and what is wrong with it.

An arrow leads from a module to one that it imports, wherever the import stands: at the top, in a function, under
``TYPE_CHECKING``, in ``import_module`` or ``__import__``, in a table that a module's ``__getattr__`` reads. That a
module's packages are imported before it is no arrow.

- ``import a.b`` leads to ``a.b`` and, because it binds ``a``, to ``a``; with ``as``, to ``a.b`` alone.
- ``from a import b`` leads to the module ``a.b``; to ``a`` if there is none, or if ``a`` binds that name to another
  thing.
- An f-string in ``import_module`` leads to all modules that its constant beginning allows.
- In a module that imports by names which it computes, or that has a ``__getattr__``, every string that is the name of a
  module counts; with a ``__getattr__`` in a package, also the name of a module in it.
- Cython's files are read by logical lines, ``cimport`` included; a ``.pxd`` belongs to the module of its name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Arrow", "Graph", "circle_text", "circles", "floor_of", "graph_of", "rising"]

#: folder -> the package that it is
PACKAGES = {"softnum": "softnum", "kernels": "softnum.kernels", "train": "softnum.train"}


@dataclass(frozen=True, order=True)
class Arrow:
    """An import: ``source`` imports ``target`` in a line of a file."""

    source: str
    target: str
    file: str
    line: int

    @property
    def pair(self) -> tuple[str, str]:
        """(source, target)"""
        return self.source, self.target

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.source} imports {self.target}"


@dataclass(frozen=True)
class Graph:
    """Modules, by name their files, and the arrows between them: the first of each pair."""

    modules: Mapping[str, str]
    arrows: tuple[Arrow, ...]

    def without(self, pairs: Iterable[tuple[str, str]]) -> Graph:
        """The graph without some pairs' arrows."""
        gone = set(pairs)
        return Graph(self.modules, tuple(arrow for arrow in self.arrows if arrow.pair not in gone))


# ---- reading ---------------------------------------------------------------------------------------------------------
def graph_of(root: Path, packages: Mapping[str, str] = PACKAGES, moved: Mapping[str, str] | None = None) -> Graph:
    """The import graph of the packages in a checkout.

    Parameters
    ----------
    root : Path
    packages : mapping of str to str
        Folder, relative to root -> name of the package.
    moved : mapping of str to str, optional
        File -> file, relative to root: modules are named as if these files had been moved.

    Raises
    ------
    SyntaxError
        If a file is not Python.
    """
    files: dict[str, list[Path]] = {}
    for folder in packages:
        for path in sorted((root / folder).rglob("*.p*")):
            if path.suffix in (".py", ".pyx", ".pxd"):
                files.setdefault(_module(path.relative_to(root), packages), []).append(path)
    renamed = {_module(Path(old), packages): _module(Path(new), packages) for old, new in (moved or {}).items()
               if old.startswith(tuple(f"{folder}/" for folder in packages))}  # fmt: skip
    known = _Modules({name: paths[0].name == "__init__.py" for name, paths in files.items()})
    for name, paths in files.items():
        if known.packages[name]:
            known.bind(name, ast.parse(paths[0].read_text(encoding="utf-8")))
    arrows = {}
    for name, paths in files.items():
        for path in paths:
            text, file = path.read_text(encoding="utf-8"), path.relative_to(root).as_posix()
            found = _of_python(text, name, known) if path.suffix == ".py" else _of_cython(text, name, known)
            for target, line in sorted(found, key=lambda pair: pair[1]):
                if target != name:
                    source, to = renamed.get(name, name), renamed.get(target, target)
                    arrows.setdefault((source, to), Arrow(source, to, file, line))
    modules = {renamed.get(name, name): paths[0].relative_to(root).as_posix() for name, paths in files.items()}
    return Graph(modules, tuple(arrows.values()))


def _module(path: Path, packages: Mapping[str, str]) -> str:
    """The module of a file, relative to the root."""
    parts = path.with_suffix("").parts
    folder = next(f for f in sorted(packages, key=len, reverse=True) if path.as_posix().startswith(f"{f}/"))
    rest = parts[len(Path(folder).parts) :]
    return ".".join([packages[folder], *(rest[:-1] if rest[-1] == "__init__" else rest)])


class _Modules:
    """The modules that there are, whether each is a package, and what packages bind to the names of their modules."""

    def __init__(self, packages: Mapping[str, bool]) -> None:
        self.packages = packages
        self.roots = tuple({name.partition(".")[0] for name in packages})
        self.hidden: set[str] = set()

    def bind(self, package: str, tree: ast.Module) -> None:
        """Note which modules a package hides behind other things of their names."""
        for node in tree.body:
            if isinstance(node, ast.ImportFrom):
                base = self.absolute(node.module or "", node.level, package)
                names = {a.asname or a.name for a in node.names if base != package}
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names = {node.name}
            elif isinstance(node, ast.Assign):
                names = {t.id for t in node.targets if isinstance(t, ast.Name)}
            else:
                continue
            self.hidden |= {f"{package}.{name}" for name in names}

    def absolute(self, name: str, level: int, module: str) -> str:
        """The absolute name of what a module imports by a relative one."""
        if not level:
            return name
        parts = module.split(".")
        up = level - (1 if self.packages.get(module, True) else 0)
        return ".".join([*(parts[: len(parts) - up] if up else parts), *([name] if name else [])])

    def nearest(self, name: str) -> str | None:
        """The module of a dotted name, or the last on the way there; None outside of the packages."""
        while name and name not in self.packages:
            name = name.rpartition(".")[0]
        return name or None

    def plain(self, name: str) -> Iterator[str]:
        """Where ``import name`` leads."""
        target = self.nearest(name)
        if target:
            yield target
            yield name.partition(".")[0]

    def taken(self, base: str, names: Iterable[str]) -> Iterator[str]:
        """Where ``from base import names`` leads."""
        target = self.nearest(base)
        for name in names if target else ():
            inner = f"{base}.{name}"
            yield inner if inner in self.packages and inner not in self.hidden else target

    def beginning(self, text: str) -> Iterator[str]:
        """Where a dotted name leads of which the beginning is known."""
        if text.partition(".")[0] in self.roots:
            yield from (n for n in self.packages if n.startswith(text) and not n.endswith(".__main__"))


def _of_python(text: str, module: str, known: _Modules) -> Iterator[tuple[str, int]]:
    """(module that is imported, line)"""
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    loaders = {"__import__"} | {
        a.asname or a.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module == "importlib"
        for a in node.names
        if a.name in ("import_module", "__import__")
    }
    lazy = any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body)
    computed, literal = lazy, set()
    for node in nodes:
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import):
            for a in node.names:
                targets = list(known.plain(a.name))
                yield from ((t, line) for t in (targets[:1] if a.asname else targets))
        elif isinstance(node, ast.ImportFrom):
            base = known.absolute(node.module or "", node.level, module)
            yield from ((t, line) for t in known.taken(base, (a.name for a in node.names)))
        elif isinstance(node, ast.Call) and _is_loader(node.func, loaders) and node.args:
            literal.add(id(node.func))
            name, *rest = node.args
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                own = name.value.lstrip(".")
                package = _package(rest, node, module)
                absolute = known.absolute(own, len(name.value) - len(own), package) if own != name.value else own
                if target := known.nearest(absolute):
                    yield target, line
            elif isinstance(name, ast.JoinedStr) and (start := _start(name, module, known)):
                yield from ((t, line) for t in known.beginning(start))
            else:
                computed = True
    computed = computed or any(
        (_is_loader(node, loaders) and id(node) not in literal) or _is_table_of_modules(node)
        for node in nodes
        if isinstance(node, (ast.Name, ast.Attribute))
    )
    if computed:
        yield from _named_in_strings(tree, module, lazy and known.packages[module], known)


def _is_loader(node: ast.AST, loaders: set[str]) -> bool:
    """Whether an expression is import_module or __import__."""
    if isinstance(node, ast.Name):
        return node.id in loaders
    return isinstance(node, ast.Attribute) and node.attr in ("import_module", "__import__")


def _is_table_of_modules(node: ast.AST) -> bool:
    """Whether an expression is sys.modules."""
    return isinstance(node, ast.Attribute) and node.attr == "modules" and getattr(node.value, "id", "") == "sys"


def _package(rest: Sequence[ast.expr], node: ast.Call, module: str) -> str:
    """The package that import_module starts from: its second argument, or that of the module."""
    given = [*rest, *(k.value for k in node.keywords if k.arg == "package")]
    return next((x.value for x in given if isinstance(x, ast.Constant) and isinstance(x.value, str)), module)


def _start(name: ast.JoinedStr, module: str, known: _Modules) -> str:
    """The known beginning of an f-string."""
    package = module if known.packages[module] else module.rpartition(".")[0]
    values, text = {"__name__": module, "__package__": package}, ""
    for part in name.values:
        if isinstance(part, ast.Constant):
            text += part.value
        elif isinstance(part, ast.FormattedValue) and getattr(part.value, "id", "") in values:
            text += values[part.value.id]
        else:
            break
    return text


def _named_in_strings(tree: ast.Module, module: str, inside: bool, known: _Modules) -> Iterator[tuple[str, int]]:
    """Modules whose names stand in strings that are no docstrings."""
    texts = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and isinstance(node.body[0] if node.body else None, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
            name = node.value.partition(":")[0]
            if "." in name and name in known.packages:
                yield name, node.lineno
            elif inside and f"{module}.{name.removeprefix('.')}" in known.packages:
                yield f"{module}.{name.removeprefix('.')}", node.lineno


_QUOTED = re.compile(
    r"""(?P<long>\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3})|(?P<short>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|(?P<comment>\#[^\n]*)""",
    re.DOTALL,
)
_CALL = re.compile(r"\b(?:import_module|__import__)\(\s*[\"']([\w.]+)[\"']")
_FROM = re.compile(r"(?:^|[:;])\s*from\s+(\.*)\s*([\w.]*)\s+c?import\s+\(?\s*([\w\s.,*]+)")
_PLAIN = re.compile(r"(?:^|[:;])\s*c?import\s+([\w\s.,]+)")


def _of_cython(text: str, module: str, known: _Modules) -> Iterator[tuple[str, int]]:
    """(module that is imported, line)"""

    def blank(kinds):
        return lambda m: re.sub(r"[^\n]", " ", m[0]) if m.lastgroup in kinds else m[0]

    calls = _QUOTED.sub(blank(("long", "comment")), text)
    for m in _CALL.finditer(calls):
        if target := known.nearest(m[1]):
            yield target, calls.count("\n", 0, m.start()) + 1
    for statement, line in _logical_lines(_QUOTED.sub(blank(("long", "short", "comment")), text)):
        for m in _FROM.finditer(statement):
            names = [part.split()[0] for part in m[3].split(",") if part.split()]
            yield from ((t, line) for t in known.taken(known.absolute(m[2], len(m[1]), module), names))
        for m in _PLAIN.finditer(statement):
            for part in m[1].split(","):
                name, *alias = part.split() or [""]
                targets = list(known.plain(name))
                yield from ((t, line) for t in (targets[:1] if alias else targets))


def _logical_lines(text: str) -> Iterator[tuple[str, int]]:
    """(statement, number of its first line); what stands in parentheses or after a backslash is one line."""
    held, depth, start = "", 0, 1
    for number, line in enumerate(text.split("\n"), 1):
        if not held:
            start = number
        depth += sum(line.count(c) for c in "([{") - sum(line.count(c) for c in ")]}")
        held += line.removesuffix("\\") + " "
        if depth <= 0 and not line.endswith("\\"):
            yield held, start
            held, depth = "", 0


# ---- what is wrong ---------------------------------------------------------------------------------------------------
def floor_of(module: str, floors: Mapping[str, Iterable[str]]) -> str | None:
    """The longest prefix of a module's name that is a floor; that of the top package is its own and ``__main__``'s."""
    name = module.removesuffix(".__main__") if module.count(".") == 1 else module
    while name not in floors:
        name = name.rpartition(".")[0]
        if "." not in name:
            return None
    return name


def rising(graph: Graph, floors: Mapping[str, Iterable[str]]) -> list[Arrow]:
    """The arrows to floors that a module's own does not stand on.

    Parameters
    ----------
    graph : Graph
    floors : mapping of str to iterable of str
        Floor, a prefix of modules' names -> the floors that it may import from besides itself.

    Raises
    ------
    ValueError
        If a module is on no floor.
    """
    if lost := [f"{graph.modules[m]} ({m})" for m in graph.modules if floor_of(m, floors) is None]:
        raise ValueError(f"on no floor: {', '.join(lost)}")
    found = []
    for arrow in graph.arrows:
        here, there = floor_of(arrow.source, floors), floor_of(arrow.target, floors)
        if here != there and there not in floors[here]:
            found.append(arrow)
    return found


def circles(graph: Graph) -> list[tuple[str, ...]]:
    """Sets of modules that import each other in circles, largest first; each module stands in one at most."""
    targets: dict[str, list[str]] = {name: [] for name in graph.modules}
    for arrow in graph.arrows:
        targets[arrow.source].append(arrow.target)
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    open_: list[str] = []
    found = []
    for first in targets:
        work = [] if first in order else [(first, iter(targets[first]))]
        while work:
            name, rest = work[-1]
            if name not in order:
                order[name] = low[name] = len(order)
                open_.append(name)
            for to in rest:
                if to not in order:
                    work.append((to, iter(targets[to])))
                    break
                if to in low:
                    low[name] = min(low[name], low[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == order[name]:
                    cut = open_.index(name)
                    group, open_ = open_[cut:], open_[:cut]
                    for done in group:
                        del low[done]
                    if len(group) > 1:
                        found.append(tuple(sorted(group)))
    return sorted(found, key=len, reverse=True)


def circle_text(graph: Graph, group: Sequence[str]) -> str:
    """A shortest circle among modules that import each other, a line for each arrow."""
    inside = [arrow for arrow in graph.arrows if arrow.source in group and arrow.target in group]
    best: list[Arrow] = []
    for start in group:
        paths = {start: []}
        queue = [start]
        for name in queue:
            for arrow in (a for a in inside if a.source == name):
                path = [*paths[name], arrow]
                if arrow.target == start and (not best or len(path) < len(best)):
                    best = path
                if arrow.target not in paths:
                    paths[arrow.target] = path
                    queue.append(arrow.target)
    return "\n".join([f"{len(group)} modules import each other in circles, among them:", *(f"  {a}" for a in best)])
