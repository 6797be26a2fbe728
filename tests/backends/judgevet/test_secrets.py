"""A key that the server repeats is kept nowhere."""

from typing import Any

import pytest

from jevexp.core.decision import Request
from jevexp.errors import InputError
from tests.backends.judgevet.conftest import Open
from tests.support.scripted_llama import Answer, scripted_llama
from tests.support.tasks import task

KEY = 'a-key"of\\some-length'
REQUEST = Request.of(task("noul"), "m-1")
GOOD = {"type": "noul", "noul": 0.5}
USAGE = {"input_tokens": 1, "output_tokens": 1}


@pytest.mark.parametrize(
    "answer",
    [
        Answer({"model": KEY, "usage": USAGE, "answers": {"decision": GOOD}}),
        Answer({"model": "m", "usage": USAGE, "answers": {"decision": GOOD}, "x_key": KEY}),
        Answer({"model": "m", "usage": USAGE, "answers": {KEY: GOOD}}),
        Answer({"detail": {"error_type": "auth", "message": KEY}}, status=401),
        Answer(f"what is {KEY}?".encode(), status=500),
        Answer(b"x" * 1990 + KEY.encode(), status=500),
    ],
    ids=["model", "extra field", "answer", "error", "text", "cut text"],
)
def test_a_body_that_repeats_it_is_withheld(
    opened: Open, monkeypatch: pytest.MonkeyPatch, answer: Answer
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    with scripted_llama() as server:
        server.answers["/v1/systemone"] = answer
        backend = opened(f"backend.base_url={server.url}", "backend.key_env=MY_KEY")
        decision = backend.decide(REQUEST)
        assert server.seen[-1].headers["Authorization"] == f"Bearer {KEY}"
    assert not decision.ok
    assert decision.error in {"bad_response", "http_error", "bad_answer_id"}
    for spelling in (KEY, KEY.replace("\\", "\\\\"), KEY.replace('"', '\\"')):
        assert spelling not in repr(decision)


def test_a_key_that_is_not_set_is_an_input_error(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TYPESAFE_API_KEY", raising=False)
    with pytest.raises(InputError, match=r"^backend\.key_env: TYPESAFE_API_KEY is not set"):
        opened()


def test_only_state_model_and_question_are_sent(opened: Open) -> None:
    seen: list[Any] = []
    with scripted_llama() as server:
        backend = opened(f"backend.base_url={server.url}", "backend.key_env=null")
        for kind in ("noul", "choice", "score"):
            request = Request.of(task(kind, id="t-9", group="g-9", provenance={"p-9": 1}), "m-1")
            sent = backend.decide(request).request["sent"]["body"]
            assert sent == request.wire()
        seen = [one.body for one in server.seen]
    assert len(seen) == 3
    assert all(set(body) == {"state", "model", "questions"} for body in seen)
    assert not any(marker in repr(seen) for marker in ("t-9", "g-9", "p-9", "family", "public"))
