"""Makes the provider as a command line would; without the bridge every test here is skipped."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from jevexp.backends.judgevet import Judgevet
from tests.support.bridge import judgevet_backend, need_bridge

Open = Callable[..., Judgevet]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """An open provider for some overrides, which is closed when the test is over."""
    need_bridge()
    with ExitStack() as stack:

        def open_(*overrides: str) -> Judgevet:
            backend = judgevet_backend(*overrides)
            stack.callback(backend.close)
            return backend.open(tmp_path)

        yield open_
