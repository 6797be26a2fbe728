"""What tests name as `backend.factory`; `PORT` is what it makes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PORT: Any = None
EVENTS: list[str] = []


def make() -> Any:
    """The port itself."""
    return PORT


@contextmanager
def scope() -> Iterator[Any]:
    """A context around the port."""
    EVENTS.append("opened")
    yield PORT
    EVENTS.append("closed")


def fail() -> Any:
    """Raise what must not be shown."""
    raise RuntimeError("password")


@contextmanager
def closed() -> Iterator[Any]:
    """A context that cannot be entered."""
    yield fail()


class Async:
    """A provider that has to be awaited."""

    async def system_one(self, state: Any, questions: Any, model: str) -> Any:
        """Never called."""
