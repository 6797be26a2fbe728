"""What a decision asks the server for, what it makes of the answer, and what it keeps."""

import hashlib
import math

import pytest

from jevexp.backends.llama_cpp import LlamaCpp
from jevexp.backends.prompt import without_thinking
from jevexp.backends.protocol import Backend
from jevexp.core.decision import ProbsSource, Request
from jevexp.core.json import dumps
from tests.support.llama import backend_settings, choice, noul, score
from tests.support.scripted_llama import Answer, ScriptedLlama, completion


def test_it_is_a_backend(backend: LlamaCpp) -> None:
    assert isinstance(backend, Backend)
    assert (backend.name, backend.cost_basis) == ("llama_cpp", None)


@pytest.mark.parametrize(
    ("request_", "labels"),
    [
        (noul(), ["no", "yes"]),
        (score(10), [str(level) for level in range(10)]),
        (score(12), [str(level) for level in range(12)]),
        (choice(1), ["topic 0"]),
        (choice(52), [f"topic {index}" for index in range(52)]),
    ],
    ids=["noul", "10 levels", "12 levels", "1 option", "52 options"],
)
def test_probabilities_have_the_exact_labels_and_sum_to_one(
    backend: LlamaCpp, request_: Request, labels: list[str]
) -> None:
    decision = backend.decide(request_)
    assert decision.ok
    assert decision.probs is not None
    assert list(decision.probs) == labels
    assert math.fsum(decision.probs.values()) == pytest.approx(1, abs=1e-12)
    # The scripted server gives the n-th candidate n shares.
    shares = list(decision.probs.values())
    assert shares[-1] / shares[0] == pytest.approx(len(labels))


def test_each_probability_belongs_to_the_label_whose_symbol_was_asked_for(
    backend: LlamaCpp, server: ScriptedLlama
) -> None:
    server.answers["/completion"] = lambda body: Answer(
        completion(body, {ord("A"): 0.2, ord("B"): 0.5, ord("C"): 0.1, 7: 0.2})
    )
    decision = backend.decide(choice(3))
    assert decision.probs == pytest.approx({"topic 0": 0.25, "topic 1": 0.625, "topic 2": 0.125})


def test_a_decision_says_who_answered_and_what_it_used(backend: LlamaCpp) -> None:
    decision = backend.decide(noul())
    assert decision.model == "scripted"
    assert decision.probs_source is ProbsSource.NATIVE
    assert decision.status_code == 200
    assert decision.error is None
    assert decision.usage["output_tokens"] == 1
    assert decision.usage["input_tokens"] > 100
    assert decision.runtime == {
        "off_option_mass": decision.response["readout"]["off_option_mass"],
        "timings": {"prompt_ms": 1.5},
    }


def test_the_evidence_holds_what_was_sent_and_what_came_back(backend: LlamaCpp) -> None:
    request = noul()
    decision = backend.decide(request)
    sent = decision.request["sent"]
    assert decision.request == request.wire() | {"sent": sent}
    assert sent["endpoint"] == "/completion"
    assert sent["body"]["logit_bias"] == [[1_200_004, 12.0], [1_200_003, 12.0]]
    assert sent["body"]["cache_prompt"] is False
    prompt = sent["body"]["prompt"]
    assert sent["prompt_sha256"] == hashlib.sha256(prompt.encode()).hexdigest()
    assert sent["candidates"]["yes"] == {"text": "yes", "id": 1_200_003}
    assert decision.response["body"]["model"] == "scripted"
    mass = decision.response["readout"]
    assert mass["bias"] == 12.0
    outside = 0.01 * math.exp(12)
    assert mass["off_option_mass"] == pytest.approx(outside / (outside + 0.99))
    assert mass["candidate_mass"] + mass["off_option_mass"] == pytest.approx(1)
    dumps([decision.request, decision.response])


def test_the_whole_body_of_a_completion(backend: LlamaCpp, server: ScriptedLlama) -> None:
    backend.decide(choice(3))
    (body,) = [seen.body for seen in server.seen if seen.path == "/completion"]
    assert body.pop("prompt").endswith("<|im_start|>assistant\n")
    assert list(body.items()) == [
        ("n_predict", 1),
        ("cache_prompt", False),
        ("temperature", 1.0),
        ("samplers", ["top_k", "temperature"]),
        ("top_k", 65_536),
        ("seed", 0),
        ("logit_bias", [[ord("A"), 12.0], [ord("B"), 12.0], [ord("C"), 12.0]]),
        ("post_sampling_probs", True),
        ("n_probs", 3 + backend_settings(base_url="http://127.0.0.1").readout.extra_probs),
    ]


@pytest.mark.parametrize(
    ("named", "expected"), [("swapped", "swapped"), ("", "scripted"), (7, "scripted")]
)
def test_the_model_that_an_answer_names_is_the_one_that_answered(
    backend: LlamaCpp, server: ScriptedLlama, named: object, expected: str
) -> None:
    server.answers["/completion"] = lambda body: Answer(
        completion(body, {1_200_003: 0.75, 1_200_004: 0.25}) | {"model": named}
    )
    assert backend.decide(noul()).model == expected


@pytest.mark.parametrize("count", ["tokens_evaluated", "tokens_predicted"])
def test_tokens_of_only_some_answers_are_no_count(
    backend: LlamaCpp, server: ScriptedLlama, count: str
) -> None:
    def answer(body: dict[str, list[list[float]]]) -> Answer:
        strong = body["logit_bias"][0][1] == 100
        found = completion(body, {1_200_004: 0.25} | ({1_200_003: 0.75} if strong else {}))
        if strong:
            del found[count]
        return Answer(found)

    server.answers["/completion"] = answer
    decision = backend.decide(noul())
    fields = {"tokens_evaluated": "input_tokens", "tokens_predicted": "output_tokens"}
    assert decision.ok
    assert decision.usage[fields.pop(count)] is None
    (other,) = fields.values()
    assert decision.usage[other] > 1


@pytest.mark.parametrize(
    ("total", "error", "known"),
    [(1.0, None, True), (1.0004, None, False), (1.05, "bad_response", False)],
)
def test_a_sum_past_one_tells_no_mass_and_far_past_one_is_no_answer(
    backend: LlamaCpp, server: ScriptedLlama, total: float, error: str | None, *, known: bool
) -> None:
    server.answers["/completion"] = lambda body: Answer(
        completion(body, {1_200_003: 0.75 * total, 1_200_004: 0.25 * total})
    )
    decision = backend.decide(noul())
    assert decision.error == error
    if decision.ok:
        assert decision.probs == pytest.approx({"no": 0.25, "yes": 0.75})
        assert decision.runtime is not None
        assert (decision.runtime["off_option_mass"] is not None) is known


def test_a_candidate_with_two_probabilities_is_not_chosen_from(
    backend: LlamaCpp, server: ScriptedLlama
) -> None:
    def answer(body: dict[str, list[list[float]]]) -> Answer:
        found = completion(body, {1_200_003: 0.75, 1_200_004: 0.25})
        found["completion_probabilities"][0]["top_probs"].append({"id": 1_200_004, "prob": 0.5})
        return Answer(found)

    server.answers["/completion"] = answer
    assert backend.decide(noul()).error == "candidate_ambiguous"


def test_a_later_decision_costs_two_requests(backend: LlamaCpp, server: ScriptedLlama) -> None:
    backend.decide(noul())
    server.seen.clear()
    assert backend.decide(noul("another state")).ok
    assert server.paths() == ["/apply-template", "/completion"]


def test_without_a_control_token_the_last_token_is_looked_at(
    backend: LlamaCpp, server: ScriptedLlama
) -> None:
    server.answers["/apply-template"] = lambda body: Answer(
        {"prompt": f"USER: {body['messages'][0]['content']}\nASSISTANT: "}
    )
    backend.decide(noul())
    server.seen.clear()
    assert backend.decide(noul("another state")).ok
    assert server.paths() == ["/apply-template", "/tokenize", "/completion"]


def test_a_missing_candidate_is_asked_for_with_a_stronger_bias(
    backend: LlamaCpp, server: ScriptedLlama
) -> None:
    def answer(body: dict[str, list[list[float]]]) -> Answer:
        found = {1_200_004: 0.25}
        if body["logit_bias"][0][1] == 100:
            found[1_200_003] = 0.75
        return Answer(completion(body, found))

    server.answers["/completion"] = answer
    decision = backend.decide(noul())
    assert decision.probs == {"no": 0.25, "yes": 0.75}
    assert decision.response["readout"] == {
        "off_option_mass": None,
        "candidate_mass": None,
        "bias": 100.0,
    }
    assert decision.response["body_without_all_candidates"]["model"] == "scripted"
    assert decision.request["sent"]["body"]["logit_bias"][0][1] == 100.0
    assert decision.usage["output_tokens"] == 2


def test_an_answer_without_a_list_is_asked_for_with_a_stronger_bias(
    backend: LlamaCpp, server: ScriptedLlama
) -> None:
    def answer(body: dict[str, list[list[float]]]) -> Answer:
        found = completion(body, {1_200_003: 0.75, 1_200_004: 0.25})
        if body["logit_bias"][0][1] != 100:
            del found["completion_probabilities"]
        return Answer(found)

    server.answers["/completion"] = answer
    decision = backend.decide(noul())
    assert decision.probs == {"no": 0.25, "yes": 0.75}
    assert decision.response["readout"]["bias"] == 100.0
    assert "completion_probabilities" not in decision.response["body_without_all_candidates"]


def test_open_thinking_is_closed_before_the_answer() -> None:
    assert without_thinking("x<think>\n") == "x<think>\n</think>\n\n"
    assert without_thinking("x<think>\n\n</think>\n\n") == "x<think>\n\n</think>\n\n"


def test_the_template_gets_one_user_turn_and_the_options(
    backend: LlamaCpp, server: ScriptedLlama
) -> None:
    backend.decide(noul())
    body = server.seen[0].body
    assert [turn["role"] for turn in body["messages"]] == ["user"]
    assert body["add_generation_prompt"] is True
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
