"""A person's own model: how it is found and made, and how little it can break."""

import sys
from pathlib import Path
from typing import Any

import pytest

from jevexp.backends.protocol import Backend, Estimates, Prepares
from jevexp.backends.python_factory import make
from jevexp.core.decision import Decision, ProbsSource, Request
from jevexp.errors import InputError
from jevexp.settings import PythonBackend
from tests.support.cli import jevexp, only_run
from tests.support.compose import compose
from tests.support.llama import model_identity
from tests.support.tasks import task

HERE = "tests.support.own_model"
REQUEST = Request.of(task("choice"), "m-1")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, whose modules nobody finds after the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def settings(factory: str, **options: Any) -> PythonBackend:
    return PythonBackend(kind="python", name="mine", factory=factory, options=options)


def own(factory: str = "Own", **options: Any) -> Backend:
    return make(settings(f"{HERE}:{factory}", **options), model_identity(), ())


def why_not(factory: str, **options: Any) -> str:
    with pytest.raises(InputError) as refused:
        make(settings(factory, **options), model_identity(), ())
    message = str(refused.value)
    assert "\n" not in message
    return message


# What is made


def test_an_object_of_the_protocol_answers_as_itself(tmp_path: Path) -> None:
    backend = own(top=0.8).open(tmp_path)
    decision = backend.decide(REQUEST)
    assert decision.probs is not None
    assert decision.probs["billing"] == 0.8
    assert (decision.model, decision.usage["input_tokens"]) == ("own-1", 3)
    assert (backend.name, backend.cost_basis) == ("mine", "own_machine")
    assert backend.describe() == {
        "kind": "python",
        "factory": f"{HERE}:Own",
        "model": "own-1",
        "top": 0.8,
    }


def test_a_plain_function_is_enough() -> None:
    backend = own("function", top=0.5)
    decision = backend.decide(REQUEST)
    assert decision.probs == {"billing": 0.5, "Account Access": 0.25, "shipping": 0.25}
    assert decision.model == backend.describe()["model"] == f"{HERE}:function"
    assert decision.probs_source is ProbsSource.NATIVE
    assert decision.response == {"probabilities": decision.probs}


def test_a_function_may_return_a_whole_decision(here: Path) -> None:
    (here / "whole_decision.py").write_text(
        "from jevexp.core.decision import Decision\n"
        "def make():\n"
        "    return lambda request: Decision(ok=False, model='x', error='too_hard')\n"
    )
    assert (
        make(settings("whole_decision:make"), model_identity(), ()).decide(REQUEST).error
        == "too_hard"
    )


def test_what_only_some_backends_offer_is_offered_where_it_is() -> None:
    careful, plain = own("Careful"), own()
    assert isinstance(careful, Prepares)
    assert not isinstance(plain, Prepares)
    assert isinstance(careful, Estimates)
    assert careful.reserve_estimate(REQUEST) == 0.5
    assert isinstance(plain, Estimates)
    assert plain.reserve_estimate(REQUEST) is None


def test_the_options_stay_what_the_manifest_shows() -> None:
    given: dict[str, Any] = {"answer": {"a": [1]}}
    made = settings(f"{HERE}:Answers", **given)
    backend = make(made, model_identity(), ())
    backend.describe()["a"].append(2)
    assert made.options == {"answer": {"a": [1]}}


# What is refused


@pytest.mark.parametrize(
    "factory", ["", "x", ":x", "x:", "a.b", "a b:c", "a:b()", "a..b:c", "os:system;x", "../a:b"]
)
def test_a_factory_is_a_dotted_path(factory: str) -> None:
    with pytest.raises(InputError, match=r"^backend\.factory: expected package\.module:callable"):
        compose("backend=python", f"backend.factory='{factory}'")


def test_a_factory_has_to_be_named() -> None:
    with pytest.raises(InputError, match=r"^backend\.factory: missing; set backend\.factory=VALUE"):
        compose("backend=python")


def test_what_is_not_there_is_named() -> None:
    assert why_not("no_such_package.module:make").startswith(
        "backend.factory: no module no_such_package; install it, or start jevexp in the folder"
    )
    assert why_not("tests.no_such_module:make").startswith(
        "backend.factory: no module tests.no_such_module; "
    )
    assert why_not(f"{HERE}:make") == f"backend.factory: {HERE} has no make"
    assert why_not(f"{HERE}:Own.make") == f"backend.factory: {HERE} has no Own.make"


def test_what_cannot_be_called_is_no_factory() -> None:
    assert why_not(f"{HERE}:NOT_CALLABLE") == (
        f"backend.factory: {HERE}:NOT_CALLABLE is a str; name what can be called"
    )


def test_options_have_to_fit_the_factory() -> None:
    assert why_not(f"{HERE}:Own", bottom=1) == (
        "backend.options: got an unexpected keyword argument 'bottom'"
    )
    assert why_not(f"{HERE}:Answers") == "backend.options: missing a required argument: 'answer'"


@pytest.mark.parametrize(("factory", "error"), [("secretive", "Runtime"), ("leaving", "System")])
def test_a_factory_that_raises_is_named_with_the_class_only(factory: str, error: str) -> None:
    found = why_not(f"{HERE}:{factory}")
    assert found.startswith(f"backend.factory: {HERE}:{factory} raised {error}")
    assert found.endswith(" while being made")
    assert "hunter2" not in found


def test_what_is_made_has_to_be_a_backend() -> None:
    assert why_not(f"{HERE}:Half").startswith(
        f"backend.factory: {HERE}:Half made a Half without cost_basis, open, close, describe; "
    )
    assert why_not(f"{HERE}:nothing").startswith(
        f"backend.factory: {HERE}:nothing made a NoneType without name, cost_basis, open, "
    )


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import no_such_library", "needs the module no_such_library"),
        ("1 / 0", "raised ZeroDivisionError while being imported"),
        ("raise SystemExit(0)", "raised SystemExit while being imported"),
        ("def make(:", "raised SyntaxError while being imported"),
    ],
)
def test_a_module_that_cannot_be_imported_is_named(source: str, said: str, here: Path) -> None:
    (here / "broken_model.py").write_text(source)
    assert why_not("broken_model:make") == f"backend.factory: broken_model {said}"


def test_nothing_is_imported_before_the_backend_is_made(here: Path) -> None:
    (here / "leaves_a_mark.py").write_text("open('mark', 'w').close()\nmake = dict\n")
    compose("backend=python", "backend.factory='leaves_a_mark:make'")
    assert not (here / "mark").exists()
    why_not("leaves_a_mark:make")
    assert (here / "mark").exists()


# What it may answer


@pytest.mark.parametrize(
    "answer",
    [
        None,
        {"no": 0.5, "yes": 0.5},
        Decision(ok=1, model="m"),  # type: ignore[arg-type]
        Decision(ok=True, model=None),  # type: ignore[arg-type]
        Decision(ok=True, model="m", probs=[0.5]),  # type: ignore[arg-type]
        Decision(ok=True, model="m", usage=None),  # type: ignore[arg-type]
        Decision(ok=False, model="m", error=KeyError()),  # type: ignore[arg-type]
        Decision(ok=False, model="m", status_code=True),
        Decision(ok=True, model="m", probs_source="guessed"),  # type: ignore[arg-type]
        Decision(ok=True, model="m", runtime="cpu"),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_an_answer_that_is_no_decision_is_a_failed_attempt_and_no_crash(answer: Any) -> None:
    with pytest.raises(TypeError):
        own("Answers", answer=answer).decide(REQUEST)


def test_a_function_that_returns_no_mapping_is_a_failed_attempt(here: Path) -> None:
    (here / "returns_text.py").write_text("def make():\n    return lambda request: 'yes'\n")
    with pytest.raises(TypeError, match="expected label to probability, found a str"):
        make(settings("returns_text:make"), model_identity(), ()).decide(REQUEST)


def test_a_description_is_a_mapping() -> None:
    with pytest.raises(InputError, match=r"^backend\.factory: .*describe returned a list"):
        own("Answers", answer=[1]).describe()


def test_a_description_cannot_pass_for_another_backend() -> None:
    said = {"kind": "llama_cpp", "factory": "x", "bad": float("nan")}
    assert own("Answers", answer=said).describe() == {
        "model": None,
        "kind": "python",
        "factory": f"{HERE}:Answers",
        "bad": "nan",
    }


# From the command line


def test_a_model_in_the_current_folder_is_run(tmp_path: Path) -> None:
    (tmp_path / "my_model.py").write_text(
        "def make(top):\n"
        "    def decide(request):\n"
        "        first, *others = request.question.options\n"
        "        rest = {label: (1 - top) / len(others) for label in others}\n"
        "        return {first: top, **rest}\n"
        "    return decide\n"
    )
    finished = jevexp(
        "dataset=demo",
        "backend=python",
        "backend.factory='my_model:make'",
        "+backend.options.top=0.75",
        "model=unclaimed",
        "model.alias=mine",
        "tracking=none",
        "caps=smoke",
        cwd=tmp_path,
    )
    assert finished.status == 0, finished.out + finished.err
    assert "3 of 3 tasks answered and valid" in finished.out
    assert '"top": 0.75' in (only_run(tmp_path / "outputs") / "manifest.json").read_text()
