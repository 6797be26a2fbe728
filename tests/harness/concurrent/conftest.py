"""What the tests of concurrent runs share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.concurrent.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.directory.release()
    made.ledger.close()
