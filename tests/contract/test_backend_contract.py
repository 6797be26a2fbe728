"""What every provider has to do, whatever is behind it; backends.py lists them."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from jevexp.backends.protocol import Backend, Concurrent, Foresees, check_concurrency
from jevexp.core.decision import Decision, ProbsSource, Request
from jevexp.core.json import dumps, loads, representable
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.harness.scoring import score
from tests.contract.backends import BACKENDS, Factory
from tests.contract.questions import ELEVEN_LEVELS, MANY_LABELS, TASKS, TWENTY_SIX, UNANSWERABLE

MODEL = "m-1"
REQUESTS = [Request.of(task, MODEL) for task in TASKS]
Make = Callable[..., Backend]


@pytest.fixture(scope="module", params=BACKENDS)
def factory(request: pytest.FixtureRequest) -> Factory:
    found: Factory = request.param
    return found


@pytest.fixture
def make(factory: Factory, tmp_path: Path) -> Iterator[Make]:
    """Makes the provider, not open yet; closes it and what it needs afterwards."""
    with ExitStack() as stack:

        def made(*requests: Request) -> Backend:
            backend = stack.enter_context(factory(tmp_path, requests))
            stack.callback(backend.close)
            return backend

        yield made


@pytest.fixture(scope="module")
def answers(
    factory: Factory, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, tuple[Task, Decision]]]:
    """What one open provider answers to all questions."""
    folder = tmp_path_factory.mktemp("answers")
    with factory(folder, REQUESTS) as backend:
        backend.open(folder)
        try:
            found = {}
            for task, request in zip(TASKS, REQUESTS, strict=True):
                decision = backend.decide(request)
                if isinstance(backend, Foresees) and backend.why_unaskable(task):
                    # It is not asked, and never answered.
                    assert (decision.ok, decision.request) == (False, None)
                else:
                    found[task.id] = (task, decision)
            yield found
        finally:
            backend.close()


@pytest.fixture(params=[task.id for task in TASKS])
def answered(
    request: pytest.FixtureRequest, answers: dict[str, tuple[Task, Decision]]
) -> tuple[Task, Decision]:
    if request.param not in answers:
        pytest.skip("it says beforehand that it does not answer this")
    return answers[request.param]


def strictly_json(value: Any) -> bool:
    """Whether a value is the same after it was written and read."""
    return bool(loads(dumps(value).encode()) == value and representable(value) == value)


# Opening and closing


def test_it_has_the_protocols_shape(make: Make) -> None:
    backend = make()
    assert isinstance(backend, Backend)
    assert backend.name
    assert backend.cost_basis is None or backend.cost_basis


def test_closing_is_harmless_before_opening_and_twice_after(make: Make, tmp_path: Path) -> None:
    backend = make()
    backend.close()
    assert backend.open(tmp_path) is backend
    backend.close()
    backend.close()


def test_it_can_be_opened_again_and_answers_the_same(make: Make, tmp_path: Path) -> None:
    backend = make(REQUESTS[0])
    backend.open(tmp_path)
    first, described = backend.decide(REQUESTS[0]), backend.describe()
    backend.close()
    backend.open(tmp_path)
    assert backend.decide(REQUESTS[0]).probs == first.probs
    assert backend.describe() == described


# Description


def test_it_describes_itself_in_json_and_the_same_way_every_time(
    make: Make, tmp_path: Path
) -> None:
    backend = make(REQUESTS[0])
    backend.open(tmp_path)
    described = copy.deepcopy(backend.describe())
    assert strictly_json(described)
    assert described["model"] is None or (
        isinstance(described["model"], str) and described["model"]
    )
    assert backend.describe() == described
    backend.decide(REQUESTS[0])
    assert backend.describe() == described


def test_nobody_can_change_its_description(make: Make, tmp_path: Path) -> None:
    backend = make()
    backend.open(tmp_path)
    described = copy.deepcopy(backend.describe())
    backend.describe().clear()
    assert backend.describe() == described


# Answers


def test_an_answer_is_a_distribution_over_exactly_the_labels(
    answered: tuple[Task, Decision],
) -> None:
    task, decision = answered
    assert decision.ok, decision.error
    assert decision.error is None
    assert decision.probs is not None
    assert set(decision.probs) == set(task.labels)
    for p in decision.probs.values():
        assert isinstance(p, int | float)
        assert not isinstance(p, bool)
        assert 0 <= p <= 1
    # Some providers round what they answer.
    assert sum(decision.probs.values()) == pytest.approx(1, abs=1e-3)
    assert decision.probs_source in (ProbsSource.NATIVE, ProbsSource.VERBALIZED)


def test_an_answer_counts_as_strictly_valid(answered: tuple[Task, Decision]) -> None:
    task, decision = answered
    verdict = score(task, decision)
    assert verdict.strict_valid
    assert verdict.predicted in task.labels


def test_an_answer_names_its_model(answered: tuple[Task, Decision]) -> None:
    _, decision = answered
    assert isinstance(decision.model, str)
    assert decision.model


def test_an_answers_status_is_an_http_success_or_unknown(answered: tuple[Task, Decision]) -> None:
    _, decision = answered
    assert decision.status_code is None or 200 <= decision.status_code < 300


def test_usage_is_in_whole_tokens_or_unknown(answered: tuple[Task, Decision]) -> None:
    _, decision = answered
    for name in ("input_tokens", "output_tokens"):
        count = decision.usage.get(name)
        assert count is None or (type(count) is int and count >= 0)


def test_the_exchange_is_kept_as_json(answered: tuple[Task, Decision]) -> None:
    _, decision = answered
    assert strictly_json(decision.request)
    assert strictly_json(decision.response)
    assert strictly_json(decision.runtime)
    assert decision.response is not None


def test_the_request_kept_is_the_request_put(answered: tuple[Task, Decision]) -> None:
    task, decision = answered
    wire = Request.of(task, MODEL).wire()
    assert {name: decision.request[name] for name in wire} == wire


def test_the_exchange_names_nothing_of_the_task_but_state_and_question(
    make: Make, tmp_path: Path
) -> None:
    def variant(marker: str, expected: str) -> Request:
        hidden = {"id": marker, "family": marker, "group": marker, "expected": expected}
        question = TASKS[0].canonical()["question"] | {"note": marker}
        fields = TASKS[0].canonical() | hidden | {"question": question}
        return Request.of(Task.model_validate(fields | {"provenance": {marker: marker}}), MODEL)

    requests = variant("marker-one", "yes"), variant("marker-two", "no")
    backend = make(*requests)
    backend.open(tmp_path)
    one, other = (backend.decide(request) for request in requests)
    assert one.request == other.request
    assert one.probs == other.probs
    for decision in (one, other):
        assert "marker" not in dumps(representable([decision.request, decision.response]))


def test_the_same_request_gets_the_same_answer(make: Make, tmp_path: Path) -> None:
    for request in (REQUESTS[0], REQUESTS[2], REQUESTS[8]):
        backend = make(request, request)
        backend.open(tmp_path)
        one, other = backend.decide(request), backend.decide(request)
        assert one.probs == other.probs
        assert one.model == other.model
        backend.close()


def test_several_threads_get_the_answers_that_one_gets(make: Make, tmp_path: Path) -> None:
    backend = make(*REQUESTS)
    backend.open(tmp_path)
    most = backend.max_concurrency if isinstance(backend, Concurrent) else 1
    if most == 1:
        with pytest.raises(InputError, match=r"^runner\.concurrency: .* takes 1 request at a time"):
            check_concurrency(backend, _THREADS)
        return
    check_concurrency(backend, _THREADS)
    alone = [backend.decide(request) for request in REQUESTS]
    with ThreadPoolExecutor(_THREADS) as threads:
        together = list(threads.map(backend.decide, REQUESTS * 3))
    for one, other in zip(alone * 3, together, strict=True):
        assert (other.ok, other.error, other.model) == (one.ok, one.error, one.model)
        assert other.request == one.request
        # Real servers round another way where they compute several together.
        assert other.probs == pytest.approx(one.probs, abs=1e-2)


_THREADS = 4


def test_a_request_is_not_changed_by_asking(make: Make, tmp_path: Path) -> None:
    of = next(task for task in TASKS if task.id == "structured")
    request = Request.of(of, MODEL)
    before = json.dumps(request.wire())
    backend = make(request)
    backend.open(tmp_path)
    backend.decide(request)
    assert json.dumps(request.wire()) == before


@pytest.mark.parametrize("task", [TWENTY_SIX, MANY_LABELS, ELEVEN_LEVELS], ids=lambda task: task.id)
def test_more_options_than_it_can_do_are_a_failure_and_no_wrong_number(
    make: Make, tmp_path: Path, task: Task
) -> None:
    request = Request.of(task, MODEL)
    backend = make(request)
    backend.open(tmp_path)
    decision = backend.decide(request)
    if decision.ok:
        assert score(task, decision).strict_valid
    else:
        assert is_safe(decision.error)
        assert decision.probs is None


def is_safe(code: str | None) -> bool:
    """Whether an error code says what happened and repeats nothing."""
    return code is not None and re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", code) is not None


def test_a_question_without_options_is_a_failure_with_a_safe_code(
    make: Make, tmp_path: Path
) -> None:
    request = Request.of(UNANSWERABLE, MODEL)
    backend = make(request)
    backend.open(tmp_path)
    decision = backend.decide(request)
    assert not decision.ok
    assert is_safe(decision.error)
    assert decision.probs is None
    assert decision.model
    assert strictly_json(decision.request)
    assert strictly_json(decision.response)
    assert score(UNANSWERABLE, decision).correct is False
