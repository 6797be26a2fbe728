"""Answers that are in the response as they were recorded, by the providers that leave them so."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from jevexp.backends.fake import MODEL_ID, made_up
from jevexp.core.decision import Decision, Request
from jevexp.core.task import Kind
from jevexp.verification.answers.tape import Raw


def read_made_up(raw: Raw) -> Decision:
    """The fake provider's answer, or its failure, as it leaves both."""
    record = raw.record
    if record.ok:
        return made_up(raw.request, raw.response["probabilities"])
    return Decision(
        ok=False,
        model=MODEL_ID,
        error=record.error,
        status_code=record.status_code,
        request=raw.request,
    )


def read_probabilities(recorded: Decision, raw: Raw, field: str) -> Decision | None:
    """The recorded decision with the distribution in a field of the response.

    None where the response is not one that jevexp itself made of a distribution.
    """
    response = raw.response
    if not raw.record.ok or not isinstance(response, Mapping):
        return None
    if field == "probabilities" and not {field} <= response.keys() <= {field, "model"}:
        return None
    probs = response.get(field)
    return replace(recorded, probs=probs) if isinstance(probs, Mapping) else None


def read_judgevet(recorded: Decision, request: Request, raw: Raw) -> Decision | None:
    """The recorded decision with the distribution in the answer that judgevet returned."""
    answers = raw.response.get("answers") if isinstance(raw.response, Mapping) else None
    answer = answers.get("decision") if isinstance(answers, Mapping) else None
    if not raw.record.ok or not isinstance(answer, Mapping):
        return None
    probs: dict[str, Any]
    if request.question.type is Kind.NOUL:
        probs = {"no": 1 - answer["noul"], "yes": answer["noul"]}
    else:
        probs = {option: answer["probabilities"][option] for option in request.question.options}
    return replace(recorded, probs=probs)
