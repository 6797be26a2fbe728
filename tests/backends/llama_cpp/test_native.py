"""A decision model is asked at its own route: which one is taken, and what comes of it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from jevexp.backends.llama_cpp import LlamaCpp, reader
from jevexp.backends.protocol import Prepares, check_concurrency
from jevexp.backends.rereading import RawAnswer
from jevexp.core.decision import Decision, Request
from jevexp.core.task import Question, Task
from jevexp.errors import InputError
from jevexp.settings import LlamaCppBackend
from tests.support.decision_files import write_decision
from tests.support.llama import backend_settings, choice, model_identity, noul, score
from tests.support.runs import noul_tasks, record
from tests.support.scripted_decisions import ERASE, NO_ERASING, SLOTS, refusal, scripted_decisions
from tests.support.scripted_llama import MODEL, Answer, ScriptedLlama
from tests.support.systemone import ENDPOINT, envelope

ERASURES = [ERASE.format(slot) for slot in range(SLOTS)]


def without_options() -> Request:
    question = Question.model_validate({"type": "choice", "instructions": "What is it about?"})
    return Request("a parcel", question, "tiny-f32")


@pytest.fixture
def server() -> Iterator[ScriptedLlama]:
    with scripted_decisions() as running:
        yield running


def chosen(url: str | None = None, *, route: str = "auto", isolation: str = "each", **server: Any
           ) -> LlamaCppBackend:  # fmt: skip
    settings = backend_settings(base_url=url, **server)
    readout = settings.readout.model_copy(update={"route": route})
    return settings.model_copy(update={"readout": readout, "isolation": isolation})


@pytest.fixture
def native(server: ScriptedLlama, tmp_path: Path) -> Iterator[LlamaCpp]:
    backend = LlamaCpp(chosen(server.url), model_identity()).open(tmp_path)
    server.seen.clear()
    yield backend
    backend.close()


Open = Callable[[LlamaCppBackend], LlamaCpp]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens a provider, which is closed after the test."""
    with ExitStack() as stack:

        def open_it(settings: LlamaCppBackend) -> LlamaCpp:
            backend = LlamaCpp(settings, model_identity()).open(tmp_path)
            stack.callback(backend.close)
            return backend

        yield open_it


def test_one_request_with_the_task_s_own_words_is_the_answer(
    server: ScriptedLlama, native: LlamaCpp
) -> None:
    native.prepare(noul())
    decision = native.decide(noul())

    assert decision.ok
    assert decision.probs == {"no": 0.25, "yes": 0.75}
    assert decision.usage == {"input_tokens": 12, "output_tokens": 2}
    assert (decision.runtime or {}).get("off_option_mass") is None
    (asked,) = [request for request in server.seen if request.path == ENDPOINT]
    assert asked.body == decision.request == noul().wire()


def test_what_it_is_is_part_of_the_readout(native: LlamaCpp) -> None:
    description = native.describe()

    assert description["readout"] == {"version": "1", "route": "native", "isolation": "each"}
    assert description["warnings"] == []
    assert "template_kwargs" not in description


@pytest.mark.parametrize("route", ["auto", "tokens"])
def test_a_chat_model_s_next_token_is_read_as_ever(
    server: ScriptedLlama, opened: Open, route: str
) -> None:
    del server.answers["/v1/models"]
    backend = opened(chosen(server.url, route=route))

    assert backend.decide(noul()).ok
    assert ENDPOINT not in server.paths()
    assert backend.describe()["readout"] == {"version": "1", "bias": 12.0, "extra_probs": 4}
    assert "warnings" not in backend.describe()
    assert not isinstance(backend, Prepares)


def test_a_decision_model_s_next_token_is_read_only_by_name(
    server: ScriptedLlama, opened: Open
) -> None:
    backend = opened(chosen(server.url, route="tokens"))

    assert backend.decide(noul()).ok
    assert ENDPOINT not in server.paths()
    (warning,) = backend.describe()["warnings"]
    assert "route=tokens" in warning


def test_a_chat_model_has_no_native_route(server: ScriptedLlama, opened: Open) -> None:
    del server.answers["/v1/models"]
    with pytest.raises(InputError, match=r"backend\.readout\.route: .*scripted.*route=auto"):
        opened(chosen(server.url, route="native"))
    assert ENDPOINT not in server.paths()


def test_every_slot_forgets_before_a_task_and_outside_its_time(
    server: ScriptedLlama, native: LlamaCpp
) -> None:
    assert isinstance(native, Prepares)
    native.prepare(noul())
    assert server.paths() == ERASURES
    native.decide(noul())
    # Somebody who prepares nothing gets the same answer.
    native.decide(noul())

    assert server.paths() == [*ERASURES, ENDPOINT, *ERASURES, ENDPOINT]


def test_where_nothing_can_be_erased_another_prompt_takes_the_slot(
    server: ScriptedLlama, opened: Open
) -> None:
    server.answers[ERASURES[0]] = NO_ERASING
    server.answers["/completion"] = Answer({"content": ""})
    backend = opened(chosen(server.url))
    server.seen.clear()

    backend.prepare(noul())

    assert backend.describe()["emptied_by"] == "other_prompt"
    assert server.paths() == ["/completion"] * SLOTS
    assert [request.body for request in server.seen] == [
        {"prompt": [999], "n_predict": 0, "cache_prompt": False, "id_slot": slot}
        for slot in range(SLOTS)
    ]


def test_a_server_that_cannot_forget_is_asked_and_it_is_said(
    server: ScriptedLlama, opened: Open
) -> None:
    server.answers[ERASURES[-1]] = NO_ERASING
    server.answers["/completion"] = refusal(500, "server_error", "no logits")
    backend = opened(chosen(server.url))

    assert backend.decide(noul()).ok
    assert not isinstance(backend, Prepares)
    description = backend.describe()
    assert description["readout"]["isolation"] == "none"
    assert "--slot-save-path" in description["warnings"][0]


@pytest.mark.parametrize(
    ("slots", "vocabulary"), [(1 << 30, 1000), (0, 1000), (-1, 1000), (None, 1000), (SLOTS, "many")]
)
def test_what_makes_no_sense_empties_nothing(
    server: ScriptedLlama, opened: Open, slots: Any, vocabulary: Any
) -> None:
    entry = {"id": MODEL, "architecture": {"output_modalities": ["decisions"]}}
    meta = {"n_vocab": vocabulary}
    server.answers["/v1/models"] = Answer({"data": [entry | {"meta": meta}]})
    server.answers["/props"] = Answer({"total_slots": slots})
    server.answers[ERASURES[0]] = NO_ERASING
    description = opened(chosen(server.url)).describe()

    assert description["emptied_by"] is None
    assert description["readout"]["isolation"] == "none"
    assert "/completion" not in server.paths()


def test_without_isolation_nothing_is_emptied(server: ScriptedLlama, opened: Open) -> None:
    backend = opened(chosen(server.url, isolation="none"))

    assert backend.decide(noul()).ok
    assert not isinstance(backend, Prepares)
    assert not set(ERASURES) & set(server.paths())
    assert backend.describe()["readout"]["isolation"] == "none"
    assert "isolation=none" in backend.describe()["warnings"][0]
    check_concurrency(backend, SLOTS)


def test_a_slot_that_stops_forgetting_fails_the_task_before_it_is_sent(
    server: ScriptedLlama, native: LlamaCpp
) -> None:
    server.answers[ERASURES[1]] = refusal(500, "server_error", "no")
    native.prepare(noul())
    decision = native.decide(noul())

    assert (decision.ok, decision.error) == (False, "not_isolated")
    assert ENDPOINT not in server.paths()
    assert read_again(native, noul(), decision) is None


def test_several_at_once_are_refused_with_both_ways_out(native: LlamaCpp) -> None:
    check_concurrency(native, 1)
    with pytest.raises(InputError) as caught:
        check_concurrency(native, 2)
    assert str(caught.value) == (
        "runner.concurrency: llama_cpp takes 1 request at a time, found 2; "
        "set runner.concurrency=1, or backend.isolation=none"
    )


@pytest.mark.parametrize(
    ("route", "isolation", "most"),
    [("auto", "each", 1), ("native", "each", 1), ("auto", "none", 3), ("tokens", "each", 3)],
)
def test_a_file_s_header_tells_before_its_server_is_started(
    tmp_path: Path, route: str, isolation: str, most: int
) -> None:
    gguf = write_decision(tmp_path / "lev.gguf", "lev")
    settings = chosen(route=route, isolation=isolation, gguf=str(gguf), slots=3)
    assert LlamaCpp(settings, model_identity()).max_concurrency == most


@pytest.mark.parametrize(
    ("answer", "code", "runtime"),
    [
        (
            refusal(400, "exceed_context_size_error", "too long", n_prompt_tokens=70, n_ctx=64),
            "context_overflow",
            {"n_prompt_tokens": 70, "n_ctx": 64},
        ),
        (
            refusal(
                400, "invalid_request_error", "questions.decision: too many options (3), this …"
            ),
            "too_many_options",
            None,
        ),
        (
            refusal(400, "invalid_request_error", '"criteria" must be an array of 2 to 10 levels'),
            "bad_levels",
            None,
        ),
        (
            refusal(501, "not_supported_error", "This model is not a decision model"),
            "not_a_decision_model",
            None,
        ),
        (
            refusal(500, "server_error", "input … increase the physical batch size (…)"),
            "prompt_beyond_ubatch",
            None,
        ),
        (refusal(500, "server_error", "failed to get embeddings"), "http_error", None),
        (Answer([1], status=500), "http_error", None),
        (Answer(envelope({"type": "noul", "noul": 2})), "bad_answer_number", None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_refusal_has_its_code_and_is_read_again(
    server: ScriptedLlama, native: LlamaCpp, answer: Answer, code: str, runtime: Any
) -> None:
    server.answers[ENDPOINT] = answer
    decision = native.decide(noul())

    assert (decision.ok, decision.error, decision.status_code) == (False, code, answer.status)
    assert decision.runtime == runtime
    assert decision.model == ("scripted-1.0" if answer.status == 200 else MODEL)
    again = read_again(native, noul(), decision)
    assert again is not None
    assert (again.error, again.runtime) == (code, runtime)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (score(1), "bad_levels"),
        (score(11), "bad_levels"),
        (choice(256), "too_many_options"),
        (without_options(), "options_unknown"),
        (noul(None), "no_state"),
    ],
)
def test_what_it_would_refuse_is_not_sent(
    server: ScriptedLlama, native: LlamaCpp, request_: Request, code: str
) -> None:
    decision = native.decide(request_)

    assert (decision.ok, decision.error, decision.status_code) == (False, code, None)
    assert decision.request is None
    assert server.paths() == []
    again = read_again(native, request_, decision)
    assert again is not None
    assert again.error == code


@pytest.mark.parametrize("request_", [noul(), choice(255), score(2), score(10)])
def test_an_answer_is_read_again(native: LlamaCpp, request_: Request) -> None:
    decision = native.decide(request_)
    assert decision.ok
    again = read_again(native, request_, decision)
    assert again is not None
    assert (again.probs, again.model, again.usage) == (
        decision.probs, decision.model, decision.usage
    )  # fmt: skip


def read_again(backend: LlamaCpp, request: Request, decision: Decision) -> Decision | None:
    (task,) = noul_tasks(1)
    kept = record(task, ok=decision.ok, error=decision.error, status_code=decision.status_code)
    raw = RawAnswer(decision.request, decision.response, kept)
    return reader(chosen(), backend.describe()).read(request, raw)


def tasks_of(*requests: Request) -> list[Task]:
    (noul_task,) = noul_tasks(1)
    return [
        noul_task.model_copy(
            update={"id": f"t{number}", "state": request.state, "question": request.question}
        )
        for number, request in enumerate(requests)
    ]


def test_which_tasks_cannot_be_asked_is_said_when_it_is_opened(
    server: ScriptedLlama, tmp_path: Path
) -> None:
    tasks = tasks_of(noul("s"), choice(256, "s"), score(1, "s"))
    with closing(LlamaCpp(chosen(server.url), model_identity(), tasks)) as backend:
        (warning,) = backend.open(tmp_path).describe()["warnings"]

    assert warning == (
        "2 of 3 tasks cannot be asked: t1 (256 options; a decision model takes at most 255), "
        "t2 (1 levels; decision models take 2 to 10)"
    )


def test_where_none_can_be_asked_nothing_is(server: ScriptedLlama, tmp_path: Path) -> None:
    backend = LlamaCpp(chosen(server.url), model_identity(), tasks_of(*[score(11)] * 4))
    with pytest.raises(InputError, match=r"^dataset: 4 of 4 tasks cannot be asked: t0 .*, …; choo"):
        backend.open(tmp_path)
    assert ENDPOINT not in server.paths()


def test_a_chat_model_s_readout_foresees_nothing(server: ScriptedLlama, tmp_path: Path) -> None:
    del server.answers["/v1/models"]
    tasks = tasks_of(score(11))
    with closing(LlamaCpp(chosen(server.url), model_identity(), tasks)) as backend:
        assert backend.open(tmp_path).why_unaskable(tasks[0]) is None


def test_a_file_s_type_tells_before_its_server_is_started(tmp_path: Path) -> None:
    gguf = write_decision(tmp_path / "lev.gguf", "lev")
    backend = LlamaCpp(chosen(gguf=str(gguf)), model_identity())
    fits, exceeds = tasks_of(choice(26), choice(27))

    assert backend.why_unaskable(fits) is None
    assert backend.why_unaskable(exceeds) == "27 options; a model of type lev takes at most 26"


@pytest.mark.parametrize(("path", "most"), [("lev.gguf", 26), ("none.gguf", 255)])
def test_a_server_on_this_machine_names_a_file_whose_type_tells(
    server: ScriptedLlama, opened: Open, tmp_path: Path, path: str, most: int
) -> None:
    write_decision(tmp_path / "lev.gguf", "lev")
    server.answers["/props"] = Answer({"total_slots": 1, "model_path": str(tmp_path / path)})
    backend = opened(chosen(server.url))

    assert backend.describe()["decision_type"] == ("lev" if most == 26 else None)
    fits, exceeds = tasks_of(choice(most), choice(most + 1))
    assert backend.why_unaskable(fits) is None
    assert backend.why_unaskable(exceeds) is not None


def test_states_longer_than_the_context_are_said_and_asked_all_the_same(
    server: ScriptedLlama, tmp_path: Path
) -> None:
    # The scripted context is 32 tokens, and a token a character.
    tasks = tasks_of(noul("short"), noul("x" * 33), noul({"key": "x" * 60}), noul("yes" * 32))
    with closing(LlamaCpp(chosen(server.url), model_identity(), tasks)) as backend:
        (warning,) = backend.open(tmp_path).describe()["warnings"]
        assert warning == (
            "the states of 2 of 4 tasks have more tokens than the context of 32: t2 has 71; "
            "raise the server's context"
        )
        assert backend.decide(noul("x" * 33)).ok
