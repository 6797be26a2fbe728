"""The System One provider: which service is asked, from `open` to `close`."""

from dataclasses import replace
from pathlib import Path
from typing import Self

from jevexp.backends.connection import Connected, Connection
from jevexp.backends.systemone.connect import facts
from jevexp.backends.systemone.read import BadAnswer, read_model, read_probs, read_usage
from jevexp.backends.transport import Failure, Posts
from jevexp.core.decision import Decision, Request
from jevexp.settings import SystemOneBackend

_ENDPOINT = "/v1/systemone"


class SystemOne(Connected[SystemOneBackend, Connection]):
    """A System One service as a provider; see docs/reference/systemone.md.

    The service is the one at `base_url`, or one that is started by `server.command`.
    """

    def open(self, log_directory: Path) -> Self:
        """Connect to the service, or start it; its log goes to `log_directory`/server.log.

        Raises:
            InputError: it cannot be reached or started, or a secret is not set. Nothing is left
                running.
        """
        try:
            self._open(log_directory)
        except BaseException:
            self.close()
            raise
        return self

    def _open(self, log_directory: Path) -> None:
        settings = self._settings
        self._connection = connection = Connection(settings, log_directory)
        self._facts = {
            "kind": settings.kind,
            "managed": connection.managed,
            "base_url": connection.base_url,
            **facts(connection.transport, connection.url),
        }

    def decide(self, request: Request) -> Decision:
        """Ask once; whatever is no answer to the question is a decision that is not ok."""
        if self._connection is None:
            raise RuntimeError("the backend is not open")
        return ask(self._connection.transport, request, self._facts["model"])


def ask(transport: Posts, request: Request, model: str | None) -> Decision:
    """Put one request to a service that calls itself `model`, or nothing, and read its answer."""
    sent = request.wire()
    # Who is asked, until an answer says who it is by.
    decision = Decision(ok=False, model=model or request.model, request=sent)
    try:
        reply = transport.post(_ENDPOINT, sent)
    except Failure as failure:
        return replace(
            decision,
            error=failure.code,
            status_code=failure.status,
            response=failure.evidence,
        )
    decision = replace(
        decision,
        status_code=reply.status,
        usage=read_usage(reply.body),
        response={"endpoint": _ENDPOINT, "body": reply.body},
    )
    try:
        decision = replace(decision, model=read_model(reply.body))
        probs = read_probs(reply.body, request.question)
    except BadAnswer as bad:
        return replace(decision, error=bad.code)
    return replace(decision, ok=True, probs=probs)
