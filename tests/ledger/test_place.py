"""Where a ledger is, and what is made for it."""

from pathlib import Path

import pytest

from jevexp.errors import InputError
from jevexp.ledger import FilePlace


def test_the_folders_of_a_ledger_are_made_for_who_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "ledger.jsonl"
    with FilePlace(path).open(1.0) as ledger:
        ledger.reserve(0.25, {"task_id": "t"})
    assert path.read_text().count("\n") == 2


def test_who_only_looks_makes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new" / "ledger.jsonl"
    with pytest.raises(InputError, match=r"caps\.ledger: .*No such file"):
        FilePlace(path).open(1.0, read_only=True)
    assert not path.parent.exists()
