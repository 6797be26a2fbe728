"""Whatever is printed on the safe console, nothing in it acts and nothing fakes a line."""

import ast
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

import jevexp
from jevexp.untrusted.console import MAX_LINE, SafeConsole, is_printable

EVIL = "t\x1b]0;owned\x07\x9b2J\u202e\r\nerror: all is well"


def printed(*objects: Any, **options: Any) -> str:
    output = io.StringIO()
    SafeConsole(file=output, width=120, soft_wrap=True).print(*objects, **options)
    return output.getvalue()


def table(text: str) -> Table:
    made = Table(title=text)
    made.add_column(text)
    made.add_row(text)
    made.add_row(Text(text, style="red"))
    return made


@pytest.mark.parametrize("make", [str, Text, table, Panel, Text.from_ansi])
def test_nothing_acts(make: Callable[[str], Any]) -> None:
    output = printed(make(EVIL), markup=False)
    assert output
    assert all(is_printable(line) for line in output.split("\n"))


@pytest.mark.parametrize("make", [str, Text, lambda text: Text.assemble(("a ", "bold"), text)])
def test_a_text_stays_on_one_line(make: Callable[[str], Any]) -> None:
    assert printed(make(EVIL), markup=False).count("\n") == 1


def test_several_lines_are_several_arguments() -> None:
    assert printed("one", Text("two\n3"), sep="\n") == "one\ntwo\\n3\n"
    assert printed(Text("last one\n")) == "last one\n\n"


def test_styles_stay_where_they_were() -> None:
    output = io.StringIO()
    console = SafeConsole(file=output, force_terminal=True, color_system="standard", no_color=False)
    console.print(Text.assemble(("a\x1b", "red"), "b"))
    assert output.getvalue() == "\x1b[31ma\\x1b\x1b[0mb\n"


def test_an_endless_text_is_cut() -> None:
    assert printed(Text("x" * 100_000)) == f"{'x' * MAX_LINE}… (100000 characters)\n"


def test_every_console_of_the_program_is_a_safe_one() -> None:
    root = Path(jevexp.__file__).parent
    made = [
        str(path.relative_to(root))
        for path in sorted(root.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id == "Console"
    ]
    assert made == []
