"""The rules of the package's layout, as functions that read Python source and return a line for each breach.

``python -m tests.house_rules`` prints all breaches of the package as it is, and two counts for each folder:
annotations that are ``Any``, and imports inside functions.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "t2017_plugin"
# From the inside out: each imports itself and what stands before it.
RINGS = (
    "paper",
    "fast",
    "fairseq_side",
    "checkpoints",
    "text",
    "scoring",
    "parsing",
    "t2t",
    "differences",
    "experiments",
    "commands",
)
# Modules at the root that all rings but paper may import, and that import nothing of the package but each other.
SHARED = ("errors", "files", "version", "markdown")
# Where fairseq's own importer looks; they hold nothing but imports of the fairseq side.
IMPORTED_BY_FAIRSEQ = ("models", "tasks")
# What the root's other modules are for.
ENTRIES = {"__init__": {"version", "fairseq_side", "text"}, "__main__": {"commands"}}
# Names that the package gives away lazily, with the ring they come from.
LAZY = {"Translator": "text", "T2017Transformer": "fairseq_side", "__version__": "version"}
# What else a ring may import, where that is restricted.
OUTSIDE = {"paper": {"torch"}, "fast": {"torch"}}
PATCHES = "fairseq_side/patches.py"
PATCHED = {"argparse", "fairseq", "fairseq_cli", "hydra", "torch"}
CHANGING = {"append", "clear", "extend", "insert", "pop", "remove", "setdefault", "update"}
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def sources() -> dict[str, str]:
    """Read all modules of the package by their path in it."""
    folder = ROOT / PACKAGE
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))
    }


def breaches(path: str, text: str) -> list[str]:
    """Return a line for each breach of any rule in a module; ``path`` is the one in the package."""
    tree = ast.parse(text)
    found = [*import_breaches(path, tree), *shape_breaches(tree), *patch_breaches(path, tree), *mock_breaches(tree)]
    if path.startswith("paper/"):
        found += [(line, f"{what} is Any") for line, what in any_annotations(tree) if what not in ("ctx", "kwargs")]
    return [f"{path}:{line}: {message}" for line, message in sorted(found)]


# Imports.


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and full name of everything imported, at the top, in functions and for types alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
            name = node.args[0] if node.args else None
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield node.lineno, name.value


def import_breaches(path: str, tree: ast.AST) -> list[tuple[int, str]]:
    """Find imports of an outer ring, and those that a ring may not have at all."""
    ring = path.split("/")[0].removesuffix(".py")
    found = []
    for line, name in imports(tree):
        first, _, rest = name.partition(".")
        if name.startswith("."):
            found.append((line, f"a relative import, {name}"))
        elif first != PACKAGE:
            if ring in OUTSIDE and first not in OUTSIDE[ring] and first not in sys.stdlib_module_names:
                found.append((line, f"{ring} imports {first}"))
        else:
            imported = rest.partition(".")[0]
            imported = LAZY.get(imported, imported)
            if imported and imported not in may_import(ring):
                found.append((line, f"{ring} imports {imported}"))
    return found


def may_import(ring: str) -> set[str]:
    """Return the folders and root modules of the package that a ring, or a module at the root, may import."""
    if ring in ENTRIES:
        return ENTRIES[ring]
    if ring in SHARED:
        return set(SHARED)
    if ring in IMPORTED_BY_FAIRSEQ:
        return {"fairseq_side"}
    if ring not in RINGS:
        return set()
    inner = set(RINGS[: RINGS.index(ring) + 1])
    if ring == "paper":
        return inner
    return inner | ({"errors"} if ring == "fast" else set(SHARED))


def mock_breaches(tree: ast.AST) -> list[tuple[int, str]]:
    """Find imports of ``unittest.mock``."""
    return [(line, "imports unittest.mock") for line, name in imports(tree) if name.startswith("unittest")]


def deferred_imports(tree: ast.AST) -> int:
    """Count the statements that import the package's own modules inside functions."""
    return len(
        {
            line
            for node in ast.walk(tree)
            if isinstance(node, FUNCTION)
            for line, name in imports(node)
            if name.startswith(PACKAGE)
        }
    )


# Docstrings.


def shape_breaches(tree: ast.Module) -> list[tuple[int, str]]:
    """Find public functions that take or return tensors and do not say of which shape.

    ``Shape:`` stands in the function's docstring; those of ``forward`` and ``backward`` may stand in the class's.
    Functions inside of functions, and private ones and those of private classes, are free. So is a
    mapping of names to tensors such as a model's state, which has no one shape.
    """
    found = []
    for owner, function in public_functions(tree):
        documented = "Shape:" in (ast.get_docstring(function) or "")
        if owner is not None and function.name in ("forward", "backward"):
            documented |= "Shape:" in (ast.get_docstring(owner) or "")
        if not documented and any(_has_tensor(annotation) for _, annotation in annotations(function)):
            name = f"{owner.name}.{function.name}" if owner else function.name
            found.append((function.lineno, f"{name} is on tensors and has no Shape: in its docstring"))
    return found


def public_functions(tree: ast.Module) -> Iterator[tuple[ast.ClassDef | None, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield the public functions of a module and the public methods of its public classes, with the class."""
    todo: list[tuple[ast.ClassDef | None, ast.stmt]] = [(None, node) for node in tree.body]
    while todo:
        owner, node = todo.pop(0)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            todo += [(node, child) for child in node.body]
        elif isinstance(node, FUNCTION) and not node.name.startswith("_"):
            yield owner, node


def annotations(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield the annotations of a function's parameters by their names, and of what it returns as ``return``."""
    given = function.args
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    yield from ((parameter.arg, parameter.annotation) for parameter in parameters if parameter.annotation)
    if function.returns:
        yield "return", function.returns


def _has_tensor(annotation: ast.expr) -> bool:
    text = ast.unparse(annotation)
    text = re.sub(r"\b(dict|Mapping|MutableMapping|OrderedDict)\[str, (torch\.)?Tensor\]", "", text)
    return re.search(r"\bTensor\b", text) is not None


# Types.


def any_annotations(tree: ast.AST) -> list[tuple[int, str]]:
    """Find annotations with ``Any`` in them, with what they annotate."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, FUNCTION):
            found += [(node.lineno, name) for name, annotation in annotations(node) if _has_any(annotation)]
        elif isinstance(node, ast.AnnAssign) and _has_any(node.annotation):
            found.append((node.lineno, ast.unparse(node.target)))
    return found


def _has_any(annotation: ast.expr) -> bool:
    return re.search(r"\bAny\b", ast.unparse(annotation)) is not None


# Assignments into other packages.


def patch_breaches(path: str, tree: ast.Module) -> list[tuple[int, str]]:
    """Find what changes an attribute or an entry of something imported from fairseq, torch or argparse.

    ``vars(x)[name] = ...`` is found whatever ``x`` is, since nothing else needs that way to write it.
    """
    if path == PATCHES:
        return []
    finder = _PatchFinder()
    finder.visit(tree)
    return finder.found


class _PatchFinder(ast.NodeVisitor):
    """Follows the names that are bound by imports from other packages, scope by scope."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, bool]] = [{}]
        self.found: list[tuple[int, str]] = []

    def bind(self, name: str, foreign: bool) -> None:
        self.scopes[-1][name] = foreign

    def is_foreign(self, node: ast.expr) -> bool:
        """Whether an expression is an imported name, or a part of one: ``a.b[c]``, ``vars(a)``."""
        while not isinstance(node, ast.Name):
            if isinstance(node, ast.Call) and _called(node) == "vars" and node.args:
                node = node.args[0]
            elif isinstance(node, (ast.Attribute, ast.Subscript)):
                node = node.value
            else:
                return False
        return next((scope[node.id] for scope in reversed(self.scopes) if node.id in scope), False)

    def report(self, node: ast.AST, target: ast.expr) -> None:
        self.found.append((getattr(node, "lineno", 0), f"changes {ast.unparse(target)}, outside of {PATCHES}"))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            first = alias.name.partition(".")[0]
            self.bind(alias.asname or first, first in PATCHED)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self.bind(alias.asname or alias.name, (node.module or "").partition(".")[0] in PATCHED)

    def visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        given = node.args
        parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
        self.scopes.append({parameter.arg: False for parameter in parameters})
        self.generic_visit(node)
        self.scopes.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_function

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            self.target(node, target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.generic_visit(node)
        if node.value is not None:
            self.target(node, node.target, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.generic_visit(node)
        self.target(node, node.target)

    def visit_For(self, node: ast.For) -> None:
        self.target(node, node.target)
        self.generic_visit(node)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            if item.optional_vars is not None:
                self.target(node, item.optional_vars)
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Name):
                self.target(node, target)

    def target(self, node: ast.AST, target: ast.expr, value: ast.expr | None = None) -> None:
        """Look at one target of an assignment; a name becomes foreign with what is assigned to it."""
        if isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self.target(node, part)
        elif isinstance(target, ast.Starred):
            self.target(node, target.value)
        elif isinstance(target, ast.Name):
            self.bind(target.id, isinstance(value, (ast.Name, ast.Attribute)) and self.is_foreign(value))
        elif self.is_foreign(target) or _is_namespace(target):
            self.report(node, target)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        if _called(node) in ("setattr", "delattr") and node.args and self.is_foreign(node.args[0]):
            self.report(node, node.args[0])
        if isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING and self.is_foreign(node.func.value):
            self.report(node, node.func.value)


def _is_namespace(target: ast.expr) -> bool:
    """Whether this is an entry of ``vars(...)`` or of a ``__dict__``."""
    if not isinstance(target, ast.Subscript):
        return False
    value = target.value
    return (isinstance(value, ast.Call) and _called(value) == "vars") or (
        isinstance(value, ast.Attribute) and value.attr == "__dict__"
    )


def _called(call: ast.Call) -> str:
    """Return the last name of what is called."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def main() -> None:
    """Print the breaches, then the counts for each folder."""
    anything: Counter[str] = Counter()
    deferred: Counter[str] = Counter()
    for path, text in sources().items():
        tree = ast.parse(text)
        folder = path.rpartition("/")[0] or "."
        anything[folder] += len(any_annotations(tree))
        deferred[folder] += deferred_imports(tree)
        print("".join(f"{line}\n" for line in breaches(path, text)), end="")
    for what, counts in (("annotations with Any", anything), ("own imports inside functions", deferred)):
        each = ", ".join(f"{folder} {count}" for folder, count in counts.most_common() if count)
        print(f"{what}: {counts.total()} ({each})")


if __name__ == "__main__":
    main()
