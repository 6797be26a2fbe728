"""An error for a person is one line, whatever was found."""

from jevexp.errors import InputError
from jevexp.untrusted.console import MAX_LINE


def test_what_was_found_cannot_write_lines_of_its_own() -> None:
    error = InputError("tasks.jsonl:1: a\nerror: all is well\x1b[2J\n")
    assert str(error) == "tasks.jsonl:1: a\\nerror: all is well\\x1b[2J"
    assert len(str(InputError("x" * 1_000_000))) < MAX_LINE + 40
