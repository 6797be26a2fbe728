"""Reads listed log-probabilities again, through the code that read them first."""

from collections.abc import Mapping
from typing import Any

from jevexp.backends.openai.asking import CHAT
from jevexp.backends.openai.connection import code_of
from jevexp.backends.openai.decide import Decider
from jevexp.backends.openai.probe import CONTEXT, BiasReach, Features
from jevexp.backends.rereading import RawAnswer, last_reply
from jevexp.backends.transport import Failure, Reply
from jevexp.core.decision import Decision, Request
from jevexp.settings import OpenAILogprobsBackend


def read_openai_logprobs(
    settings: OpenAILogprobsBackend,
    description: Mapping[str, Any],
    request: Request,
    raw: RawAnswer,
) -> Decision | None:
    """What the recorded exchange comes to; None where not all of it was kept.

    The prompt and the candidates' token ids are taken from the recording, since only the server
    can make them. On the chat route nobody saw the prompt, and its hash is taken as it is.
    """
    sent, response = raw.sent, raw.response
    asked = "body" in sent
    if not raw.record.ok and request.question.options and (not asked or "further_biases" in sent):
        # Failed before the first request for a token, or after several: the others are not kept.
        return None
    tape = _Tape(raw)
    found = description["features"]
    features = Features(
        route=found["route"],
        family=found["tokenize"] or found["chat_template_rendering"],
        tokenizer=tape.tokens if "candidates" in sent and found["tokenize"] else None,
        renderer=tape.rendered if found["chat_template_rendering"] else None,
        tokens=found["tokens"],
        logit_bias=BiasReach(found["logit_bias"]),
        top=found["max_top_logprobs"],
        extras=found["extra_fields"],
    )
    decision = Decider(tape, settings, features, description["model"]).decide(request)
    if sent.get("endpoint") == CHAT and "prompt_sha256" in sent and response is not None:
        decision.request["sent"]["prompt_sha256"] = sent["prompt_sha256"]
    return decision


class _Tape:
    """The server's part of one decision."""

    def __init__(self, raw: RawAnswer) -> None:
        self._raw = raw
        prompt = raw.sent.get("body", {}).get("prompt")
        self._prompt = prompt if isinstance(prompt, str) else CONTEXT
        self._ids = {
            candidate["text"]: candidate["id"]
            for candidate in raw.sent.get("candidates", {}).values()
        }
        self._bodies: list[Any] = []
        if raw.record.ok:
            self._bodies = [raw.response["body"], *raw.response.get("further_bodies", [])]

    def post(self, path: str, body: dict[str, Any]) -> Reply:
        del path, body
        if not self._raw.record.ok:
            return last_reply(self._raw, code_of)
        if not self._bodies:
            raise Failure("not_in_the_recording")
        return Reply(self._raw.record.status_code or 200, self._bodies.pop(0))

    def rendered(self, content: str) -> str:
        del content
        return self._prompt

    def tokens(self, text: str, *, special: bool = True) -> list[int]:
        added = text.removeprefix(self._prompt)
        tokens = [1 if special else 2]
        if special and added != text and added:
            tokens.append(self._ids[added])
        return tokens
