"""One decision: ask the provider once, check its answer, keep what was exchanged."""

from typing import Any

from jevexp.backends.judgevet.answers import (
    WrongAnswer,
    read_answer,
    response_json,
    token_counts,
    typed_question,
)
from jevexp.backends.judgevet.exchange import Exchange
from jevexp.backends.judgevet.failures import failure_of
from jevexp.backends.judgevet.providers import Provider
from jevexp.core.decision import Decision, Request
from jevexp.untrusted.secrets import Secrets


class Decider:
    """Decides through one open provider; nothing that repeats `key` is kept."""

    def __init__(self, provider: Provider, key: str | None) -> None:
        self._provider = provider
        transport = provider.transport
        self._exchanges = transport.exchanges if transport is not None else []
        self._secrets = Secrets([key])

    def decide(self, request: Request) -> Decision:
        """Ask once; every declared error of judgevet's is a decision that is not ok."""
        options = len(request.question.options)
        most = self._provider.most_options
        if not options:
            return Decision(ok=False, model=self._asked(request), error="options_unknown")
        if most is not None and options > most:
            return Decision(ok=False, model=self._asked(request), error="too_many_options")
        return self._ask(request)

    def _ask(self, request: Request) -> Decision:
        from judgevet import JudgevetError

        question = request.question
        response = None
        self._exchanges.clear()
        try:
            response = self._provider.port.system_one(
                request.state, {"decision": typed_question(question)}, self._asked(request)
            )
            probs = read_answer(question, response)
        except WrongAnswer as wrong:
            return self._failure(request, wrong.code, self._status(), response)
        except JudgevetError as error:
            code, status = failure_of(error, self._exchanges[-1] if self._exchanges else None)
            return self._failure(request, code, status, None)
        except Exception as error:
            if self._status() is None:
                raise
            # What a server sends can make the packages raise anything; what came is kept.
            return self._failure(request, "bad_response", self._status(), error)
        model = self._answered_by(response)
        kept, repeats_key = self._received(response)
        if repeats_key or self._secrets.occur_in(model):
            return self._failure(request, "bad_response", self._status(), None)
        receipts = (getattr(response, "receipts", None) or {}).get("decision")
        return Decision(
            ok=True,
            model=model,
            probs=probs,
            status_code=self._status(),
            usage=token_counts(response),
            request=self._sent(request),
            response=kept,
            runtime=dict(receipts) if receipts else None,
        )

    def _failure(self, request: Request, code: str, status: int | None, response: Any) -> Decision:
        kept, _ = self._received(response)
        return Decision(
            ok=False,
            model=self._asked(request),
            error=code,
            status_code=status,
            request=self._sent(request),
            response=kept,
        )

    def _asked(self, request: Request) -> str:
        """The model that the provider is asked for: its own, where it only has one."""
        return self._provider.model or request.model

    def _answered_by(self, response: Any) -> str:
        """The model that the answer names; the server's word where the provider has none."""
        if self._provider.echoes_model and self._telling is not None and self._telling.model:
            return self._telling.model
        named: str = response.model
        return named

    @property
    def _telling(self) -> Exchange | None:
        """The exchange that evidence is about: the last that did not just look something up."""
        asked = [exchange for exchange in self._exchanges if exchange.sent]
        return asked[-1] if asked else None

    def _status(self) -> int | None:
        return self._telling.status if self._telling is not None else None

    def _sent(self, request: Request) -> dict[str, Any]:
        exchange = self._telling
        return request.wire() | ({"sent": exchange.sent_json()} if exchange is not None else {})

    def _received(self, response: Any) -> tuple[dict[str, Any] | None, bool]:
        """The provider's response, and the body that it was made from, as far as there are any.

        And whether the key was in there, which is replaced.
        """
        exchange = self._telling
        kept: dict[str, Any] = {}
        if isinstance(response, Exception):
            kept = {"raised": type(response).__name__}
        elif response is not None:
            kept = response_json(response)
        shown: dict[str, Any] = self._secrets.without(kept)
        repeats_key = shown != kept
        if exchange is not None:
            body, body_repeats_key = exchange.received_json(self._secrets)
            shown |= body
            repeats_key = repeats_key or body_repeats_key
        return shown or None, repeats_key
