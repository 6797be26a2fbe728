"""Databases for ledgers: SQLite files, and schemas of one PostgreSQL."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from tests.support.postgres import Postgres, postgres

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    """A PostgreSQL for all tests that need one."""
    with postgres() as running:
        yield running


@pytest.fixture
def new_schema(server: Postgres) -> Callable[[], str]:
    """Makes addresses of places in PostgreSQL where nothing is yet."""

    def make() -> str:
        name = f"ledger{next(_numbers)}"
        engine = create_engine(server.url)
        with engine.begin() as connection:
            connection.execute(text(f"CREATE SCHEMA {name}"))
        engine.dispose()
        return f"{server.url}?options=-csearch_path%3D{name}"

    return make


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a place where no ledger is yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    made: str = request.getfixturevalue("new_schema")()
    return made
