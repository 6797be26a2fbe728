"""What every test shares: nothing of the person who runs them, and no outside network."""

import gc
import os
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ("tests.support.browser", "tests.support.schema")

# How long an example takes depends on the disk and on who else uses the machine.
settings.register_profile("jevexp", deadline=None)
settings.load_profile("jevexp")

# Whoever started the tests in the background, or under nohup, has these ignored, by us and by what
# we start; tests are about what they do.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Before any module reads it: downloads and assembled weights stay out of the person's own cache.
_CACHE = tempfile.TemporaryDirectory(prefix="jevexp-tests-")
os.environ["JEVEXP_CACHE"] = _CACHE.name
os.environ["JEVEXP_STATE"] = f"{_CACHE.name}/state"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
# Output is compared as text, whatever terminal the tests run on.
os.environ.pop("FORCE_COLOR", None)
os.environ["NO_COLOR"] = "1"


def pytest_collection_finish() -> None:
    """What the modules hold stays; looking through it again and again took a sixth of the time."""
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, as a person's own folder would be."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
