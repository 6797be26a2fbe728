"""Probabilities that a model writes, on any OpenAI-compatible server, read strictly."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from jevexp.backends.connection import Connected
from jevexp.backends.openai.connection import (
    OpenAIConnection,
    answering_model,
    code_of,
    first_choice,
    usage,
    with_options,
)
from jevexp.backends.prompt import HEADINGS
from jevexp.backends.rereading import AnswerReader, RawAnswer, RecordedTransport, RequestForm
from jevexp.backends.transport import Failure, HttpPoster, Reply
from jevexp.core.decision import Decision, ProbsSource, Request
from jevexp.core.json import dumps, loads
from jevexp.core.task import Question, Task, as_text
from jevexp.settings import ModelIdentity, OpenAIChatBackend

_ENDPOINT = "/v1/chat/completions"
# Goes up with every change that moves a single byte of a prompt or of the schema.
VERBALIZED_VERSION = "verbalized-1"

_CLOSING = (
    'Answer with a JSON object only: under "probabilities", the probability of each of them being '
    "the right one, as a number from 0 to 1. All of them sum to 1. The keys are exactly: "
)


def make(settings: OpenAIChatBackend, model: ModelIdentity, tasks: Iterable[Task]) -> "OpenAIChat":
    """The provider, not opened yet."""
    del tasks
    return OpenAIChat(settings, model)


def reader(settings: OpenAIChatBackend, description: Mapping[str, Any]) -> AnswerReader:
    """Reads the one recorded answer to a request, by the code that read it first."""

    def read(request: Request, raw: RawAnswer) -> Decision:
        return ask(RecordedTransport(raw, code_of), request, settings, description["model"])

    return AnswerReader(read, request_form=RequestForm.COMPUTED)


class OpenAIChat(Connected[OpenAIChatBackend, OpenAIConnection]):
    """A chat model as a provider; see docs/reference/openai.md."""

    def __init__(self, settings: OpenAIChatBackend, model: ModelIdentity) -> None:
        super().__init__(settings)
        self._alias = model.alias

    def open(self, log_directory: Path) -> Self:
        """Connect to the server, or start it with its log in `log_directory`.

        Raises:
            InputError: the server cannot be reached or started. Nothing is left running.
        """
        settings = self._settings
        self._connection = connection = OpenAIConnection(settings, self._alias, log_directory)
        self._facts = {
            "kind": settings.kind,
            "managed": connection.managed,
            "base_url": connection.base_url,
            "model": connection.model,
            "prompt_version": VERBALIZED_VERSION,
            "readout": {
                "max_tokens": settings.max_tokens,
                "options": dict(settings.options),
                "remove": list(settings.remove),
            },
        }
        return self

    def decide(self, request: Request) -> Decision:
        """Ask once; every failure of the server or of the model is a decision that is not ok."""
        if self._connection is None:
            raise RuntimeError("the backend is not open")
        connection = self._connection
        return ask(connection.transport, request, self._settings, connection.model)


def ask(
    transport: HttpPoster, request: Request, settings: OpenAIChatBackend, named: str | None
) -> Decision:
    """Put one request to a server that calls the model `named`, or nothing, and read its answer."""
    model = named or request.model
    labels = request.question.options
    if not labels:
        return _failed(model, "options_unknown")
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
    try:
        reply = transport.post(_ENDPOINT, body)
    except Failure as failure:
        return _failed(
            model,
            failure.code,
            status_code=failure.status,
            request=sent,
            response=failure.evidence,
        )
    came: dict[str, Any] = {
        "status_code": reply.status,
        "usage": usage([reply]),
        "request": sent,
        "response": {"endpoint": _ENDPOINT, "body": reply.body},
        "runtime": {"timings": reply.body.get("timings")},
    }
    model = answering_model(reply, model)
    try:
        probs = read_probabilities(_text(reply), labels)
    except Failure as failure:
        return _failed(model, failure.code, **came)
    except NotJSON:
        return _failed(model, "not_json", **came)
    except ValueError:
        return _failed(model, "bad_answer", **came)
    return Decision(ok=True, model=model, probs=probs, probs_source=ProbsSource.VERBALIZED, **came)


def _text(reply: Reply) -> str:
    """What the model wrote; raises Failure where it wrote nothing whole."""
    choice = first_choice(reply)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise Failure("bad_response", reply.status)
    if message.get("refusal"):
        raise Failure("refusal", reply.status)
    codes = {"length": "truncated", "content_filter": "content_filter"}
    finish = choice.get("finish_reason")
    if isinstance(finish, str) and finish in codes:
        raise Failure(codes[finish], reply.status)
    text = message.get("content")
    if not isinstance(text, str) or not text:
        raise Failure("no_content", reply.status)
    return text


def _failed(model: str, code: str, **came: Any) -> Decision:
    return Decision(ok=False, model=model, error=code, probs_source=ProbsSource.VERBALIZED, **came)


def content(request: Request) -> str:
    """The content of the one user message; nothing but state and question is in it."""
    question = request.question
    return "\n\n".join(
        [
            "Read the following and then answer one question about it.",
            as_text(request.state),
            f"Question: {question.instructions}",
            HEADINGS[question.type] + "\n" + "\n".join(_lines(question)),
            _CLOSING + ", ".join(map(dumps, question.options)),
        ]
    )


def response_format(labels: Sequence[str]) -> dict[str, Any]:
    """The strict JSON schema: one number for each label, and nothing else."""
    numbers = {label: {"type": "number"} for label in labels}
    schema = _closed_object({"probabilities": _closed_object(numbers)})
    return {
        "type": "json_schema",
        "json_schema": {"name": "decision", "strict": True, "schema": schema},
    }


def read_probabilities(text: str, labels: Sequence[str]) -> dict[str, Any]:
    """The probabilities that a text is, in the order of `labels`.

    Numbers are passed on as they are: whether they are probabilities and what they sum to is for
    the scoring to judge.

    Raises:
        NotJSON: the text is something else than one JSON document.
        ValueError: it is one, and not exactly the object that was asked for.
    """
    try:
        loads(text, lenient=True)
    except ValueError as error:
        raise NotJSON from error
    # Once more: a repeated key makes it no answer, and JSON all the same.
    answer = json.loads(text, object_pairs_hook=_unique)
    if not isinstance(answer, dict) or set(answer) != {"probabilities"}:
        raise ValueError('not an object with "probabilities" alone')
    found = answer["probabilities"]
    if not isinstance(found, dict) or set(found) != set(labels):
        raise ValueError("not exactly the labels")
    if any(
        isinstance(value, bool) or not isinstance(value, int | float) for value in found.values()
    ):
        raise ValueError("not numbers")
    return {label: found[label] for label in labels}


class NotJSON(ValueError):
    """A text that is no JSON document."""


def _closed_object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _lines(question: Question) -> list[str]:
    """One line an option: its label in quotes, as it is a key of the answer, its description."""
    return [
        f"{dumps(label)}: {description}" if description else dumps(label)
        for label, description in question.descriptions.items()
    ]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found
