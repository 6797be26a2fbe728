"""Probabilities that a model writes, on any OpenAI-compatible server, read strictly."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from jevexp.backends.connection import Connected, connect
from jevexp.backends.openai.connection import code_of, find_model, first_choice, usage, with_options
from jevexp.backends.prompt import user_content
from jevexp.backends.rereading import AnswerReader, RecordedTransport, RequestForm
from jevexp.backends.transport import Failure, HttpPoster, Reply, is_number, name_or_none
from jevexp.core.decision import Decision, ProbsSource, Request
from jevexp.core.json import dumps, loads
from jevexp.settings import OpenAIChatBackend

_ENDPOINT = "/v1/chat/completions"
# Goes up with every change that moves a single byte of a prompt or of the schema.
VERBALIZED_VERSION = "verbalized-1"
_CLOSING = (
    'Answer with a JSON object only: under "probabilities", the probability of each of them being '
    "the right one, as a number from 0 to 1. All of them sum to 1. The keys are exactly: "
)
_CODES = {"length": "truncated", "content_filter": "content_filter"}


def reader(settings: OpenAIChatBackend, description: Mapping[str, Any]) -> AnswerReader:
    """Reads the one recorded answer to a request, by the code that read it first."""
    named = description["model"]
    return AnswerReader(
        lambda request, raw: ask(RecordedTransport(raw, code_of), settings, named, request),
        request_form=RequestForm.COMPUTED,
    )


class OpenAIChat(Connected[OpenAIChatBackend]):
    """A chat model as a provider; see docs/reference/openai.md."""

    def _open(self, log_directory: Path) -> None:
        settings = self._settings
        connection = self._hold(connect(settings, log_directory, code_of=code_of))
        model = find_model(connection, settings, self._model.alias)
        self._facts |= {
            "model": model,
            "prompt_version": VERBALIZED_VERSION,
            "readout": {
                "max_tokens": settings.max_tokens,
                "options": dict(settings.options),
                "remove": list(settings.remove),
            },
        }
        self._ask = partial(ask, connection.transport, settings, model)


make = OpenAIChat


def ask(
    transport: HttpPoster, settings: OpenAIChatBackend, named: str | None, request: Request
) -> Decision:
    """Put one request to a server that calls the model `named`, or nothing, and read its answer."""
    decision = Decision(ok=False, model=named or request.model, probs_source=ProbsSource.VERBALIZED)
    labels = request.question.options
    if not labels:
        return replace(decision, error="options_unknown")
    body = with_options(
        {
            "model": request.model,
            "messages": [{"role": "user", "content": content(request)}],
            "temperature": 0,
            "max_tokens": settings.max_tokens,
            "response_format": response_format(labels),
        },
        settings,
    )
    sent = request.wire() | {"sent": {"endpoint": _ENDPOINT, "body": body}}
    decision = replace(decision, request=sent)
    try:
        reply = transport.post(_ENDPOINT, body)
    except Failure as failure:
        return replace(
            decision, error=failure.code, status_code=failure.status, response=failure.evidence
        )
    decision = replace(
        decision,
        model=name_or_none(reply.body.get("model")) or decision.model,
        status_code=reply.status,
        usage=usage([reply]),
        response=reply.evidence(_ENDPOINT),
        runtime={"timings": reply.body.get("timings")},
    )
    try:
        return replace(decision, ok=True, probs=read_probabilities(_text(reply), labels))
    except Failure as failure:
        return replace(decision, error=failure.code)
    except NotJSON:
        return replace(decision, error="not_json")
    except ValueError:
        return replace(decision, error="bad_answer")


def _text(reply: Reply) -> str:
    """What the model wrote; raises Failure where it wrote nothing whole."""
    choice = first_choice(reply)
    message, finish = choice.get("message"), choice.get("finish_reason")
    if not isinstance(message, dict):
        raise Failure("bad_response", reply.status)
    if message.get("refusal"):
        raise Failure("refusal", reply.status)
    if isinstance(finish, str) and finish in _CODES:
        raise Failure(_CODES[finish], reply.status)
    if text := name_or_none(message.get("content")):
        return text
    raise Failure("no_content", reply.status)


def content(request: Request) -> str:
    """The content of the one user message; nothing but state and question is in it."""
    question = request.question
    # A label stands in quotes, as it is a key of the answer.
    lines = [
        f"{dumps(label)}: {description}" if description else dumps(label)
        for label, description in question.descriptions.items()
    ]
    keys = ", ".join(map(dumps, question.options))
    return f"{user_content(request, lines)}\n\n{_CLOSING}{keys}"


def response_format(labels: Sequence[str]) -> dict[str, Any]:
    """The strict JSON schema: one number for each label, and nothing else."""
    numbers = {label: {"type": "number"} for label in labels}
    schema = _closed_object({"probabilities": _closed_object(numbers)})
    return {
        "type": "json_schema",
        "json_schema": {"name": "decision", "strict": True, "schema": schema},
    }


def _closed_object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def read_probabilities(text: str, labels: Sequence[str]) -> dict[str, Any]:
    """The probabilities that a text is, in the order of `labels`.

    Numbers are passed on as they are: whether they are probabilities and what they sum to is for
    the scoring to judge. Raises NotJSON where the text is something else than one JSON document,
    and another ValueError where it is not exactly the object that was asked for.
    """
    try:
        loads(text, lenient=True)
    except ValueError as error:
        raise NotJSON from error
    # Strictly now: a repeated key makes it no answer, and JSON all the same.
    answer = loads(text)
    if not isinstance(answer, dict) or set(answer) != {"probabilities"}:
        raise ValueError('not an object with "probabilities" alone')
    probabilities = answer["probabilities"]
    if not isinstance(probabilities, dict) or set(probabilities) != set(labels):
        raise ValueError("not exactly the labels")
    if not all(map(is_number, probabilities.values())):
        raise ValueError("not numbers")
    return {label: probabilities[label] for label in labels}


class NotJSON(ValueError):
    """A text that is no JSON document."""
