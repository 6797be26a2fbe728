"""Providers that a configuration names by the path of what makes them."""

import re
import sys
from pathlib import Path

import pytest

from jevexp.core.decision import Request
from jevexp.errors import InputError
from tests.backends.judgevet import made
from tests.backends.judgevet.conftest import Open
from tests.support.bridge import fake_port, judgevet_backend, need_bridge
from tests.support.tasks import task

HERE = "tests.backends.judgevet.made"
REQUEST = Request.of(task("choice"), "m-1")


def named(path: str) -> tuple[str, str]:
    return "backend.provider=factory", f"backend.factory={path}"


def test_a_provider_is_asked_once_a_task_with_state_question_and_model(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = fake_port(seed=3)
    monkeypatch.setattr(made, "PORT", port)
    backend = opened(*named(f"{HERE}:make"))
    decision = backend.decide(REQUEST)
    assert decision.ok
    ((state, questions, model),) = port.calls
    assert (state, model, list(questions)) == (REQUEST.state, "m-1", ["decision"])
    assert questions["decision"].criteria == REQUEST.question.criteria
    readout = {"provider": "factory", "factory": f"{HERE}:make"}
    assert backend.describe()["readout"] == readout


def test_a_context_is_entered_and_left(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "PORT", fake_port())
    monkeypatch.setattr(made, "EVENTS", [])
    backend = opened(*named(f"{HERE}:scope"))
    assert backend.decide(REQUEST).ok
    assert made.EVENTS == ["opened"]
    backend.close()
    assert made.EVENTS == ["opened", "closed"]


def test_a_module_in_the_current_folder_is_found(
    opened: Open, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    text = "from judgevet.testing import FakeSystemOnePort as make"
    (workplace / "module_found_here.py").write_text(text)
    assert opened(*named("module_found_here:make")).decide(REQUEST).ok


def test_nothing_is_imported_before_the_provider_is_opened() -> None:
    need_bridge()
    sys.modules.pop("antigravity", None)
    judgevet_backend(*named("antigravity:geohash"))
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("no.such.module:make", "no module no; install it, or start jevexp in the folder"),
        (f"{HERE}:missing", f"{HERE} has no missing"),
        (f"{HERE}:PORT", f"{HERE}:PORT is a "),
        (f"{HERE}:fail", f"{HERE}:fail raised RuntimeError"),
        (f"{HERE}:closed", f"{HERE}:closed raised RuntimeError"),
        (f"{HERE}:Async", f"{HERE}:Async made a Async, which has no synchronous system_one"),
        ("builtins:dict", "builtins:dict made a dict, which has no synchronous system_one"),
    ],
)
def test_what_makes_no_provider_is_one_line(opened: Open, path: str, line: str) -> None:
    with pytest.raises(InputError, match=re.escape(line)) as raised:
        opened(*named(path))
    assert "\n" not in str(raised.value)
    assert "password" not in str(raised.value)
