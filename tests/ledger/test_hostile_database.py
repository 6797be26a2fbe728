"""A database of somebody else, where any column may hold anything: one clear error each."""

import sqlite3
from pathlib import Path

import pytest

from jevexp.cli.main import main
from jevexp.errors import InputError
from jevexp.ledger.location import LedgerDatabase
from jevexp.ledger.state import LedgerError

ENDLESS = (
    "with recursive c(seq, event, reservation_id, usd, ts, meta) as (select 1, 'reserve', 'a', "
    "0.1, 1.0, '{}' union all select seq + 1, event, 'a' || seq, usd, ts, meta from c) "
    "select * from c order by usd"
)
CASES = {
    "a power of ten": (["update jevexp_ledger set charged='1e99999999'"], "charged is no amount"),
    "a word": (["update jevexp_ledger set charged='abc'"], "charged is no amount"),
    "nothing to divide by": (["update jevexp_ledger set charged='1/0'"], "charged is no amount"),
    "a wrong cap": (["update jevexp_ledger set cap_usd='abc'"], "cap_usd: an amount must be"),
    "a wrong count": (["update jevexp_ledger set n_rows='x'"], "n_rows is no number"),
    "an endless view": (
        ["drop table jevexp_ledger_row", f"create view jevexp_ledger_row as {ENDLESS}"],
        "not a ledger: holds jevexp_ledger_row, a view",
    ),
    "a trigger": (
        ["create trigger t after insert on jevexp_ledger_row begin select 1; end"],
        "not a ledger: holds t, a trigger",
    ),
    "a computed column": (
        ["alter table jevexp_ledger add x text generated always as (hex(zeroblob(500000000)))"],
        "not a ledger: holds jevexp_ledger, a table that is computed",
    ),
    "a column computed in short": (
        ["alter table jevexp_ledger add x text as (hex(zeroblob(500000000)))"],
        "not a ledger: holds jevexp_ledger, a table that is computed",
    ),
}
ROWS = {
    "text for money": ["update jevexp_ledger_row set usd='abc'"],
    "no finite money": ["update jevexp_ledger_row set usd=9e999"],
    "half of an object": ["update jevexp_ledger_row set meta='{\"a\":'"],
    "a list": ["update jevexp_ledger_row set meta='[1]'"],
    "deep JSON": [f"update jevexp_ledger_row set meta='{'[' * 5000}'"],
    "bytes": ["update jevexp_ledger_row set meta=x'ff00'"],
    "bytes for a time": ["update jevexp_ledger_row set ts=x'ff'"],
    "an unknown event": ["update jevexp_ledger_row set event='boo' where seq=2"],
    "a number for a name": ["update jevexp_ledger_row set reservation_id=x'00' where seq=2"],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with one reservation."""
    place = LedgerDatabase(f"sqlite:///{tmp_path / 'theirs.db'}")
    with place.open(1.0) as ledger:
        ledger.reserve(0.1, {"task_id": "a", "adapter": "x"})
    return tmp_path / "theirs.db"


def spoil(path: Path, statements: list[str]) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(("statements", "reason"), CASES.values(), ids=CASES)
def test_what_a_ledger_cannot_hold_is_refused(
    statements: list[str], reason: str, path: Path
) -> None:
    spoil(path, statements)
    for read_only in (True, False):
        with pytest.raises((InputError, LedgerError)) as refused:
            LedgerDatabase(f"sqlite:///{path}").open(1.0, read_only=read_only)
        assert f"theirs.db: {reason}" in str(refused.value)


@pytest.mark.parametrize("verb", ["show", "export"])
@pytest.mark.parametrize("statements", ROWS.values(), ids=ROWS)
def test_a_row_that_is_none_is_named(
    statements: list[str], verb: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(path, statements)
    assert main(["ledger", verb, f"sqlite:///{path}"]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "theirs.db: row " in error
    assert "not a ledger row" in error


def test_a_session_that_is_none_is_nobodys(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for fields in ("'{}'", "'[['", "x'ff'", "'[]'", "'3'"):
        spoil(path, [f"update jevexp_ledger_session set fields={fields}"])
        assert main(["ledger", "show", "--open", f"sqlite:///{path}"]) == 0
        assert "reservations: 1, open: 1" in capsys.readouterr().out


def test_a_file_that_is_no_database_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.db").write_text("no database, but text " * 100)
    assert main(["ledger", "show", f"sqlite:///{tmp_path / 'text.db'}"]) == 2
    assert "file is not a database" in capsys.readouterr().err
