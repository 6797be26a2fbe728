"""Reads llama.cpp's completions again: prompt, candidates and readout, through the same code."""

from collections.abc import Mapping
from typing import Any

from jevexp.backends.llama_cpp.connect import code_of
from jevexp.backends.llama_cpp.decide import Decider
from jevexp.backends.llama_cpp.readout import MISSING_BIAS
from jevexp.backends.rereading import RawAnswer, last_reply
from jevexp.backends.transport import Failure, Reply
from jevexp.core.decision import Decision, Request
from jevexp.settings import LlamaCppBackend

_TEMPLATE, _TOKENIZE, _COMPLETION = "/apply-template", "/tokenize", "/completion"


def read_llama_cpp(
    settings: LlamaCppBackend, description: Mapping[str, Any], request: Request, raw: RawAnswer
) -> Decision | None:
    """What the recorded exchange comes to; None where it does not tell which try failed.

    The rendered prompt and the candidates' token ids are taken from the recording, since only the
    server can make them; everything that follows from them is computed.
    """
    if not raw.record.ok and settings.readout.bias == MISSING_BIAS:
        return None
    body = raw.sent.get("body")
    routed = isinstance(body, dict) and "model" in body
    decider = Decider(
        _Tape(raw),
        settings.template,
        settings.readout,
        str(description["model"]),
        route={"model": request.model} if routed else {},
    )
    return decider.decide(request)


class _Tape:
    """The server's part of one decision."""

    def __init__(self, raw: RawAnswer) -> None:
        self._raw = raw
        self._completed = raw.sent.get("endpoint") == _COMPLETION
        self._prompt = raw.sent["body"]["prompt"] if self._completed else ""
        self._ids = {
            candidate["text"]: candidate["id"]
            for candidate in raw.sent.get("candidates", {}).values()
        }
        self._replies = self._completions()

    def post(self, path: str, body: dict[str, Any]) -> Reply:
        if path == _TEMPLATE:
            return self._rendered()
        if path == _TOKENIZE:
            return self._tokens(body["content"], special=body["parse_special"])
        return self._replies.pop(0) if self._replies else last_reply(self._raw, code_of)

    def _rendered(self) -> Reply:
        if not self._completed and self._failed_at() != _TOKENIZE:
            return last_reply(self._raw, code_of)
        return Reply(200, {"prompt": self._prompt})

    def _failed_at(self) -> Any:
        response = self._raw.response
        return response.get("endpoint") if isinstance(response, dict) else None

    def _tokens(self, text: str, *, special: bool) -> Reply:
        if not self._completed:
            record = self._raw.record
            raise Failure(record.error or "", record.status_code, self._raw.response)
        added = text.removeprefix(self._prompt)
        # Two readings that differ say that the prompt's end is cut off by a control token.
        tokens = [1 if special else 2]
        if special and added != text and added:
            tokens.append(self._ids[added])
        return Reply(200, {"tokens": tokens})

    def _completions(self) -> list[Reply]:
        """The replies that were kept, in their order."""
        response, status = self._raw.response, self._raw.record.status_code or 200
        if not self._completed or not isinstance(response, dict):
            return []
        if not self._raw.record.ok:
            strong = any(bias == MISSING_BIAS for _, bias in self._raw.sent["body"]["logit_bias"])
            # Of the attempt that failed at last, the answer before it is not kept.
            return [Reply(200, {})] if strong else []
        before = response.get("body_without_all_candidates")
        bodies = [before, response["body"]] if before is not None else [response["body"]]
        return [Reply(status, body) for body in bodies]
