"""What the tests of resuming share."""

from pathlib import Path

import pytest

from tests.run.resume.sessions import Desk


@pytest.fixture
def desk(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """An empty folder for runs."""
    return Desk(workplace, monkeypatch)
