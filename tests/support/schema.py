"""MLflow's empty database in this process: migrated once, then copied.

MLflow makes a fresh SQLite database by running its whole history of migrations, a second each time,
to the same end. A process of its own still does so.
"""

import sys
from contextlib import closing
from typing import Any

import pytest

_MODULE = "mlflow.store.db.utils"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """From the first test on that finds MLflow imported."""
    utils: Any = sys.modules.get(_MODULE)
    if utils is not None and not isinstance(utils._initialize_tables, _Initialize):
        utils._initialize_tables = _Initialize(utils._initialize_tables)


class _Initialize:
    """MLflow's own function, asked once."""

    def __init__(self, migrate: Any) -> None:
        self._migrate = migrate
        self._script = ""

    def __call__(self, engine: Any) -> None:
        """Make the tables of a database without any."""
        if engine.dialect.name != "sqlite":
            self._migrate(engine)
        elif self._script:
            with closing(engine.raw_connection()) as connection:
                connection.driver_connection.executescript(self._script)
        else:
            self._migrate(engine)
            with closing(engine.raw_connection()) as connection:
                self._script = "\n".join(connection.driver_connection.iterdump())
