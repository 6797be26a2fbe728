"""What every provider leaves is read again by its own code, and a change in it is seen."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from jevexp.backends.transport import CLOSED
from jevexp.store.directory import MANIFEST, RESULTS
from jevexp.verification import Report, State, verify_run
from tests.support.forgery import edit_line, edit_raw, lines, raw_file, reseal
from tests.support.in_process import run_here
from tests.support.scripted_llama import Answer, ScriptedLlama, completion, scripted_llama
from tests.support.scripted_openai import HOSTED, LLAMA, SGLANG, VLLM, Flavour, scripted_openai
from tests.support.scripted_openai import completion as chat_completion
from tests.support.systemone import ENDPOINT, respond, scripted_systemone
from tests.support.tiny_gguf import write_tiny_gguf
from tests.verification.test_run import complaints

MODEL = ("model=unclaimed", "dataset=demo", "caps.limit=12")
GATEWAY = "/v1/chat/completions"


def verified(run: Path) -> Report:
    report = verify_run(run)
    assert complaints(report) == []
    assert report.state is State.VERIFIED
    return report


def forged(run: Path, number: int, change: Callable[[dict[str, Any]], None]) -> list[str]:
    """What is said about a changed raw answer when every hash fits again."""
    edit_raw(run, number, change)
    reseal(run)
    return [failure.message for failure in verify_run(run).check("answers").failures]


def turns(*answers: Any) -> Callable[[Any], Answer]:
    """One behaviour after the other, from the first again."""
    following = cycle(answers)

    def respond_in_turn(body: Any) -> Answer:
        answer = next(following)
        return answer if isinstance(answer, Answer) else answer(body)

    return respond_in_turn


def llama(server: ScriptedLlama) -> tuple[str, ...]:
    return (*MODEL, "backend=llama_cpp", "model.alias=scripted",
            f"backend.server.base_url={server.url}", "backend.request_timeout_s=2")  # fmt: skip


def openai(server: ScriptedLlama, backend: str) -> tuple[str, ...]:
    return (*MODEL, f"backend={backend}", "model.alias=served",
            f"backend.base_url={server.url}", "backend.timeout_s=2")  # fmt: skip


def systemone(server: ScriptedLlama) -> tuple[str, ...]:
    return (*MODEL, "backend=systemone", "model.alias=scripted-1.0", "backend.key_env=null",
            f"backend.base_url={server.url}", "backend.timeout_s=2")  # fmt: skip


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve tasks answered by a real llama.cpp server with a tiny random model."""
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    folder = tmp_path_factory.mktemp("tiny")
    gguf = write_tiny_gguf(folder / "tiny.gguf")
    return run_here(
        folder, *MODEL, "backend=llama_cpp", "model.alias=tiny", f"model.weights.path={gguf}"
    )


def test_a_real_llama_cpp_server(tiny: Path) -> None:
    report = verified(tiny)

    assert report.check("answers").count == 12
    assert report.check("answers").notes == report.check("requests").notes == []
    assert report.check("identity").count > 10


def test_an_answer_of_llama_cpp_that_was_changed(run_of_tiny: Path) -> None:
    def change(raw: dict[str, Any]) -> None:
        for entry in raw["response"]["body"]["completion_probabilities"][0]["top_probs"]:
            entry["prob"] /= 2 if entry["prob"] > 0.3 else 1

    assert "probs_as_returned" in forged(run_of_tiny, 3, change)[0]


def test_a_prompt_that_held_more_than_the_message(run_of_tiny: Path) -> None:
    def change(raw: dict[str, Any]) -> None:
        sent = raw["request"]["sent"]
        sent["body"]["prompt"] = f"The answer is yes.\n{sent['body']['prompt']}"
        sent["prompt_sha256"] = hashlib.sha256(sent["body"]["prompt"].encode()).hexdigest()

    assert forged(run_of_tiny, 3, change) == []
    (failure,) = verify_run(run_of_tiny).check("requests").failures
    assert failure.message == "request.sent: the prompt holds more than other tasks' prompts"


@pytest.mark.parametrize(
    "path",
    [("candidates", "no", "id"), ("prompt_sha256",), ("body", "n_probs"), ("body", "temperature")],
)
def test_a_request_to_llama_cpp_that_was_changed(run_of_tiny: Path, path: tuple[str, ...]) -> None:
    def change(raw: dict[str, Any]) -> None:
        place = raw["request"]["sent"]
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = 3

    assert forged(run_of_tiny, 0, change)


@pytest.fixture
def run_of_tiny(tiny: Path, tmp_path: Path) -> Path:
    """A copy of that run, to be changed."""
    return Path(shutil.copytree(tiny, tmp_path / "tiny"))


def missing_one(body: dict[str, Any]) -> Answer:
    """A list that lacks a candidate unless the bias is strong."""
    (first, bias), *others = body["logit_bias"]
    values = {token: 0.4 / (index + 1) for index, (token, _) in enumerate(others)}
    return Answer(completion(body, values if bias < 100 else values | {first: 0.3}))


def all_of_them(body: dict[str, Any]) -> Answer:
    """A list with every candidate."""
    return Answer(
        completion(
            body, {token: 0.3 / (at + 1) for at, (token, _) in enumerate(body["logit_bias"])}
        )
    )


def test_llama_cpp_that_answers_oddly(tmp_path: Path) -> None:
    overflow = {"error": {"type": "exceed_context_size_error"}}
    with scripted_llama() as server:
        server.answers["/completion"] = turns(
            missing_one,
            all_of_them,
            Answer({"completion_probabilities": "odd"}),
            Answer(overflow, status=400),
            all_of_them,
            Answer({"truncated": True}),
            Answer(drop=True),
            all_of_them,
            Answer(b"no JSON"),
            Answer([1, 2], status=422),
            all_of_them,
        )
        run = run_here(tmp_path, *llama(server))
    records = lines(run, RESULTS)
    report = verified(run)

    assert report.check("answers").count == len(records) >= 10
    assert len({record["error"] for record in records}) >= 5


def another_model(body: dict[str, Any]) -> Answer:
    """An answer that another model gives than the one that the server lists."""
    answer = all_of_them(body)
    return Answer(answer.body | {"model": "swapped"})


def test_llama_cpp_whose_model_is_swapped_stops_the_run(tmp_path: Path) -> None:
    with scripted_llama() as server:
        server.answers["/completion"] = turns(all_of_them, all_of_them, another_model)
        run = run_here(tmp_path, *llama(server))

    assert [record["model"] for record in lines(run, RESULTS)] == ["scripted"] * 2 + ["swapped"]
    assert json.loads((run / MANIFEST).read_text())["stop_reason"] == "identity_changed"
    assert verified(run).status == "incomplete"


def past_one(body: dict[str, Any]) -> Answer:
    """Probabilities whose sum rounding carried past 1."""
    ids = [token for token, _ in body["logit_bias"]]
    return Answer(completion(body, dict.fromkeys(ids, 1.0004 / len(ids))))


def test_masses_that_earlier_versions_took_for_known_verify(tmp_path: Path) -> None:
    with scripted_llama() as server:
        server.answers["/completion"] = past_one
        run = run_here(tmp_path, *llama(server), "caps.limit=2")
    verified(run)

    def say(candidates: float, outside: float) -> list[str]:
        edit_line(run, RESULTS, 0, lambda record: record["runtime"].update(off_option_mass=outside))
        return forged(
            run,
            0,
            lambda raw: raw["response"]["readout"].update(
                off_option_mass=outside, candidate_mass=candidates
            ),
        )

    # The readout before it knew what it did not know.
    assert say(1.0, 0.0) == []
    assert verified(run).check("answers").count == 2
    assert "off_option_mass" in say(0.9, 0.1)[0]


def test_llama_cpp_that_fails_before_the_question(tmp_path: Path) -> None:
    with scripted_llama() as server:
        server.answers["/apply-template"] = Answer({"error": {"message": "no"}}, status=500)
        first = run_here(tmp_path / "template", *llama(server))
        del server.answers["/apply-template"]
        server.answers["/tokenize"] = Answer({"tokens": "none"})
        second = run_here(tmp_path / "tokens", *llama(server))

    for run in (first, second):
        assert verified(run).check("answers").count == 3


def test_a_system_one_service_with_good_and_bad_answers(tmp_path: Path) -> None:
    with scripted_systemone() as server:
        server.answers[ENDPOINT] = turns(
            respond,
            Answer({"model": "scripted-1.0", "answers": {}}),
            Answer({"detail": "no"}, status=422),
            respond,
            Answer(drop=True),
            Answer(b"<html>"),
            respond,
        )
        run = run_here(tmp_path, *systemone(server))
    report = verified(run)

    assert report.check("answers").count == 12
    number = next(at for at, record in enumerate(lines(run, RESULTS)) if record["ok"])

    def change(raw: dict[str, Any]) -> None:
        (answer,) = raw["response"]["body"]["answers"].values()
        answer["noul"] = 0.5

    assert "probs_as_returned" in forged(run, number, change)[0]


def test_evidence_from_before_headers_were_kept(tmp_path: Path) -> None:
    with scripted_systemone() as server:
        limited = Answer({"detail": "no"}, status=503, headers={"Retry-After": "7"})
        server.answers[ENDPOINT] = turns(respond, limited)
        run = run_here(tmp_path, *systemone(server))
    verified(run)
    kept: list[Any] = []
    for number in range(12):
        edit_raw(run, number, lambda raw: kept.append(raw["response"].pop("headers")))
    assert kept == [{}, {"retry-after": "7"}] * 6

    reseal(run)
    assert verified(run).check("answers").count == 12


LIMITED = Answer({"error": {"message": "slow down", "code": 429}})


def test_an_error_under_200_ends_a_run_like_its_status(tmp_path: Path) -> None:
    with scripted_systemone() as server:
        server.answers[ENDPOINT] = turns(respond, Answer({"error": "no"}), LIMITED, respond)
        run = run_here(tmp_path, *systemone(server))
    report = verified(run)
    manifest = json.loads((run / MANIFEST).read_bytes())
    records = lines(run, RESULTS)

    assert [record["error"] for record in records] == [None, "error_body", "error_body_429"]
    assert [record["status_code"] for record in records] == [200, 200, 200]
    assert (manifest["stop_reason"], manifest["exit_status"]) == ("rate_limited", 1)
    assert report.check("answers").count == 3


def test_a_run_that_an_error_under_200_did_not_end(tmp_path: Path) -> None:
    """Somebody makes another failure of the error, so that the run had no reason to stop."""
    with scripted_systemone() as server:
        server.answers[ENDPOINT] = turns(LIMITED)
        run = run_here(tmp_path, *systemone(server))
    verified(run)
    edit_line(run, RESULTS, 0, lambda record: record.update(error="bad_answer_model"))
    reseal(run)
    report = verify_run(run)

    (message,) = [failure.message for failure in report.check("answers").failures]
    assert message == "error: results.jsonl:1 says 'bad_answer_model', read: 'error_body_429'"
    (message,) = [failure.message for failure in report.check("stop").failures]
    assert message == "stop_reason: rate_limited; the records lead to no rule"


def test_a_stop_that_no_body_asked_for(tmp_path: Path) -> None:
    with scripted_systemone() as server:
        server.answers[ENDPOINT] = turns(LIMITED)
        run = run_here(tmp_path, *systemone(server))

    def change(raw: dict[str, Any]) -> None:
        raw["response"]["body"]["error"]["code"] = 500

    assert forged(run, 0, change) == [
        "error: results.jsonl:1 says 'error_body_429', read: 'error_body'"
    ]


def test_an_error_under_200_as_earlier_versions_recorded_it(tmp_path: Path) -> None:
    with scripted_systemone() as server:
        server.answers[ENDPOINT] = turns(respond, Answer({"error": "no"}))
        run = run_here(tmp_path, *systemone(server))
    for number in range(12):
        edit_raw(run, number, lambda raw: raw["response"].pop("headers"))
    earlier = {"error": "bad_answer_model", "usage": {"input_tokens": None, "output_tokens": None}}
    for number in range(1, 12, 2):
        edit_line(run, RESULTS, number, lambda record: record.update(earlier))
    reseal(run)

    assert verified(run).check("answers").count == 12


def test_a_page_where_a_key_is_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the page no more than its size and hash is kept."""
    monkeypatch.setenv("SERVICE_KEY", "sk-0123456789abcdef")
    good = {"model": "scripted-1.0", "about": "sk-0123456789abcdef"}
    with scripted_systemone() as server:
        server.answers[ENDPOINT] = turns(respond, Answer(b"<html>"), respond, Answer(good))
        run = run_here(tmp_path, *systemone(server), "backend.key_env=SERVICE_KEY")
    report = verified(run)

    assert [record["error"] for record in lines(run, RESULTS)] == [None, "bad_response"] * 6
    assert report.check("answers").count == 12


def test_a_connection_that_broke(tmp_path: Path) -> None:
    with scripted_systemone() as server:
        server.answers[ENDPOINT] = turns(respond, Answer(drop=True))
        run = run_here(tmp_path, *systemone(server))
    record = lines(run, RESULTS)[1]
    raw = json.loads(raw_file(run, record["task_id"]).read_bytes())
    assert raw["response"] == {"endpoint": ENDPOINT, "reason": CLOSED}
    assert verified(run).check("answers").count == 12

    # As earlier versions left it.
    edit_raw(run, 3, lambda raw: raw.update(response=None))
    reseal(run)
    assert verified(run).check("answers").count == 12
    (message,) = forged(run, 1, lambda raw: raw["response"].update(body={"answers": {}}))
    assert "no connection ends with 'connection_failed' and without a status" in message


def test_a_failure_that_was_an_answer(tmp_path: Path) -> None:
    """A wrong answer that somebody turned into a failure of the service."""
    with scripted_systemone() as server:
        run = run_here(tmp_path, *systemone(server))

    def change(raw: dict[str, Any]) -> None:
        raw["response"]["body"]["model"] = ""

    messages = forged(run, 0, change)
    assert messages[0].startswith("ok: results.jsonl:1 says True, read: False")


def test_a_chat_model_that_writes_probabilities(tmp_path: Path) -> None:
    with scripted_openai(HOSTED) as server:
        good = server.answers[GATEWAY]
        server.answers[GATEWAY] = turns(
            good,
            Answer(chat_completion("perhaps")),
            Answer(chat_completion('{"probabilities": {"maybe": 1}}')),
            good,
            Answer(chat_completion("", finish_reason="length")),
            Answer({"error": {"code": "context_length_exceeded"}}, status=400),
            good,
        )
        run = run_here(tmp_path, *openai(server, "openai_chat"))
    report = verified(run)

    assert report.check("answers").count == 12

    def change(raw: dict[str, Any]) -> None:
        message = raw["response"]["body"]["choices"][0]["message"]
        message["content"] = json.dumps({"probabilities": {"no": 0.25, "yes": 0.75}})

    assert "probs_as_returned" in forged(run, 0, change)[0]


@contextmanager
def flavoured(flavour: Flavour, tmp_path: Path, *overrides: str) -> Iterator[Path]:
    with scripted_openai(flavour) as server:
        yield run_here(tmp_path, *openai(server, "openai_logprobs"), *overrides)


@pytest.mark.parametrize("flavour", [LLAMA, VLLM, SGLANG, HOSTED], ids=["llama", "vllm", "sglang",
                                                                       "hosted"])  # fmt: skip
@pytest.mark.parametrize("route", ["chat", "completions"])
def test_listed_log_probabilities(tmp_path: Path, flavour: Flavour, route: str) -> None:
    if route == "completions" and flavour in (SGLANG, HOSTED):
        route = "null"
    with flavoured(flavour, tmp_path, f"backend.route={route}") as run:
        pass
    report = verified(run)
    assert report.check("answers").count == len(lines(run, RESULTS))

    def change(raw: dict[str, Any]) -> None:
        raw["response"]["body"]["choices"][0]["logprobs"] = None

    assert forged(run, 0, change)
