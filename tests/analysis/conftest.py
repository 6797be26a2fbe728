"""Comparisons of random answers to the demo tasks, made once."""

import pytest

from tests.analysis.made import Compared, compared, demo_tasks


@pytest.fixture(scope="session")
def two_runs() -> Compared:
    """A better run against a worse one."""
    return compared(demo_tasks(), 0.3, 0.9)


@pytest.fixture(scope="session")
def five_runs() -> Compared:
    """Four candidates of growing skill."""
    return compared(demo_tasks(), 0.5, 0.1, 0.5, 0.7, 0.95)
