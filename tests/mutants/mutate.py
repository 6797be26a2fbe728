"""Every small fault that a module could have, one at a time: mutants."""

import ast
import difflib
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
CALCULATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
EXTREMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
# Messages and logs may say what they like; what zip checks is checked nowhere else.
_UNCHANGED = (ast.JoinedStr, ast.Raise, ast.Assert, ast.Import, ast.ImportFrom)
_UNCHANGED_KEYWORDS = {"strict", "exist_ok", "missing_ok", "parents", "usedforsecurity"}


@dataclass(frozen=True)
class Mutant:
    """A module's text with one small fault.

    `path` is the module's, relative to the repository; `line` and `last_line` are those of the text
    that was changed, from 1; `function` is the one around it.
    """

    path: Path
    kind: str
    line: int
    last_line: int
    function: str
    original: str
    text: str

    @property
    def diff(self) -> str:
        """What was changed, without the lines around it."""
        before, after = (text.splitlines(keepends=True) for text in (self.original, self.text))
        return "".join(difflib.unified_diff(before, after, str(self.path), self.kind, n=0))

    @property
    def changed(self) -> tuple[str, str]:
        """The line that was taken away and the one that came instead, without their indents."""
        lines = self.diff.splitlines()[2:]
        old = [line[1:].strip() for line in lines if line.startswith("-")]
        new = [line[1:].strip() for line in lines if line.startswith("+")]
        return " ".join(old), " ".join(new)


def mutants(path: Path, text: str) -> list[Mutant]:
    """All mutants of a module that still compile."""
    module = _Module(path, text)
    module.visit(ast.parse(text), "")
    return module.mutants


class _Module:
    """Walks a module's tree and notes what could be changed."""

    def __init__(self, path: Path, text: str) -> None:
        self.mutants: list[Mutant] = []
        self._path = path
        self._text = text
        self._bytes = text.encode()
        self._starts = [0, *accumulate(map(len, self._bytes.splitlines(keepends=True)))]
        self._seen = {text}

    def visit(self, node: ast.AST, function: str) -> None:
        if isinstance(node, _UNCHANGED) or _is_log(node) or _is_all(node):
            return
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            function = f"{function}.{node.name}" if function else node.name
        for kind, changed in _changes(node):
            self._add(kind, node, self._span(node), changed, function)
        self._dropped_parts(node, function)
        if isinstance(node, ast.FunctionDef):
            self._early_returns(node, function)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.keyword) and child.arg in _UNCHANGED_KEYWORDS:
                    continue
                if isinstance(child, ast.AST):
                    self.visit(child, function)

    def _early_returns(self, node: ast.FunctionDef, function: str) -> None:
        """Only where nothing is returned: elsewhere a missing value would be seen at once."""
        if not (isinstance(node.returns, ast.Constant) and node.returns.value is None):
            return
        for statement in node.body[1:]:
            start, end = self._span(statement)
            again = self._bytes[start:end].decode()
            changed = f"return\n{' ' * statement.col_offset}{again}"
            self._add("early return", statement, (start, end), changed, function)

    def _dropped_parts(self, node: ast.AST, function: str) -> None:
        """One entry fewer in a dictionary, or in a list of at least three things."""
        if isinstance(node, ast.Dict) and len(node.keys) > 1 and None not in node.keys:
            parts = [key for key in node.keys if key is not None]
            ends = [self._span(value)[1] for value in node.values]
        elif isinstance(node, ast.Tuple | ast.List | ast.Set) and len(node.elts) > 2:
            parts = node.elts
            ends = [self._span(part)[1] for part in parts]
        else:
            return
        starts = [self._span(part)[0] for part in parts]
        for at, part in enumerate(parts):
            last = at == len(parts) - 1
            span = (ends[at - 1], ends[at]) if last else (starts[at], starts[at + 1])
            self._add("dropped part", part, span, "", function)

    def _span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node begins and ends in the module's bytes."""
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def _add(
        self, kind: str, node: ast.AST, span: tuple[int, int], changed: str, function: str
    ) -> None:
        assert isinstance(node, ast.expr | ast.stmt)
        start, end = span
        text = (self._bytes[:start] + changed.encode() + self._bytes[end:]).decode()
        try:
            compile(text, str(self._path), "exec")
        except SyntaxError:
            return
        if text not in self._seen:
            self._seen.add(text)
            last_line = node.end_lineno or node.lineno
            self.mutants.append(
                Mutant(self._path, kind, node.lineno, last_line, function, self._text, text)
            )


def _changes(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The kinds of fault that a node can have, each with the text that replaces it."""
    for kind, change in _KINDS:
        for changed in change(node):
            if isinstance(changed, ast.stmt):
                yield kind, ast.unparse(changed)
            else:
                yield kind, f"({ast.unparse(changed)})" if _binds(changed) else ast.unparse(changed)


def _binds(node: ast.AST) -> bool:
    return isinstance(node, ast.BoolOp | ast.BinOp | ast.Compare | ast.UnaryOp | ast.IfExp)


def _comparison(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            changed = deepcopy(node)
            changed.ops[at] = FLIPPED[type(operator)]()
            yield changed


def _and_or(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BoolOp):
        changed = deepcopy(node)
        changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield changed
        for at in range(len(node.values)):
            rest = [value for index, value in enumerate(node.values) if index != at]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def _removed_not(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand


def _constant(node: ast.AST) -> Iterator[ast.AST]:
    if not isinstance(node, ast.Constant):
        return
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
        if node.value > 0:
            yield ast.Constant(node.value - 1)
    elif isinstance(node.value, float):
        yield ast.Constant(node.value * 2 or 1.0)


def _calculation(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BinOp) and type(node.op) in CALCULATED:
        operands = (node.left, node.right)
        if not any(isinstance(one, ast.List | ast.Tuple) or _is_text(one) for one in operands):
            yield ast.BinOp(node.left, CALCULATED[type(node.op)](), node.right)


def _extreme(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in EXTREMES:
        yield ast.Call(ast.Name(EXTREMES[node.func.id]), node.args, node.keywords)
        if node.func.id in ("min", "max") and len(node.args) == 2:
            yield from node.args


def _swapped(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Call) and len(node.args) == 2:
        first, second = node.args
        if not any(isinstance(one, ast.Starred) for one in node.args):
            yield ast.Call(node.func, [second, first], node.keywords)


def _dropped_call(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()


def _dropped_guard(node: ast.AST) -> Iterator[ast.AST]:
    """A condition that nothing meets any more."""
    if isinstance(node, ast.If) and not node.orelse and len(node.body) == 1:
        (only,) = node.body
        if isinstance(only, ast.Raise | ast.Return | ast.Continue | ast.Break):
            yield ast.Pass()


def _other_branch(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.IfExp):
        yield node.body
        yield node.orelse


_KINDS: tuple[tuple[str, Callable[[ast.AST], Iterator[ast.AST]]], ...] = (
    ("flipped comparison", _comparison),
    ("and, or", _and_or),
    ("removed not", _removed_not),
    ("changed constant", _constant),
    ("other calculation", _calculation),
    ("other extreme", _extreme),
    ("swapped arguments", _swapped),
    ("dropped call", _dropped_call),
    ("dropped guard", _dropped_guard),
    ("only one branch", _other_branch),
)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _is_log(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and isinstance(node.value.func.value, ast.Name)
        and node.value.func.value.id == "log"
    )


def _is_all(node: ast.AST) -> bool:
    """`__all__`, which only type checks read."""
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
