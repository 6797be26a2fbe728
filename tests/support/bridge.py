"""The judgevet provider for tests, which are skipped where its packages are not."""

from typing import Any

import pytest

from jevexp.backends.judgevet import Judgevet, require_packages
from jevexp.errors import InputError
from jevexp.settings import JudgevetBackend
from tests.support.compose import compose


def need_bridge() -> None:
    """Skip the test, saying why, where the bridge cannot be used."""
    try:
        require_packages()
    except InputError as error:
        pytest.skip(str(error))


def judgevet_backend(*overrides: str, alias: str = "m-1") -> Judgevet:
    """The provider of `jevexp backend=judgevet OVERRIDES`, or of another option among them."""
    backend = () if any(one.startswith("backend=") for one in overrides) else ("backend=judgevet",)
    settings = compose(*backend, "model=unclaimed", f"model.alias={alias}", *overrides)
    assert isinstance(settings.backend, JudgevetBackend)
    return Judgevet(settings.backend, settings.model)


def fake_port(**options: Any) -> Any:
    """A provider of judgevet's own for tests: seeded answers, or what `options` script."""
    from judgevet.testing import FakeSystemOnePort

    return FakeSystemOnePort(**options)
