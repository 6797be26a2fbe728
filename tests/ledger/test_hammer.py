"""One cap, many processes, random kills; bench/shared_cap.py does the same for longer."""

import time
from pathlib import Path

import pytest

from tests.support.hammered import hammer
from tests.support.postgres import Postgres


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


def test_a_file_is_never_overspent_and_forgets_nothing(tmp_path: Path, notes: Path) -> None:
    place = str(tmp_path / "ledger.jsonl")
    numbers = hammer(place, notes, processes=8, requests=200, kills=20, seed=1)
    assert numbers["kills"] >= 10


def test_sqlite_is_never_overspent_and_forgets_nothing(tmp_path: Path, notes: Path) -> None:
    place = f"sqlite:///{tmp_path / 'ledger.db'}"
    numbers = hammer(place, notes, processes=8, requests=120, kills=15, seed=2)
    assert numbers["kills"] >= 10


def test_postgresql_is_never_overspent_and_forgets_nothing_across_a_restart(
    server: Postgres, notes: Path
) -> None:
    def restart() -> None:
        time.sleep(0.5)
        server.restart()

    numbers = hammer(
        server.url, notes, processes=16, requests=200, kills=20, seed=3, meanwhile=restart
    )
    assert numbers["kills"] >= 10
