"""An open provider on a scripted service."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jevexp.backends.systemone import SystemOne
from jevexp.core.decision import Decision, Request
from jevexp.core.task import Task
from tests.support.llama import model_identity
from tests.support.scripted_llama import Answer, Behaviour, ScriptedLlama
from tests.support.systemone import ENDPOINT, envelope, good, scripted_systemone, settings
from tests.support.tasks import task

TASKS = {kind: task(kind) for kind in ("noul", "choice", "score")}


@dataclass
class Asked:
    """The provider, the service, and a way to have one answer read."""

    backend: SystemOne
    service: ScriptedLlama

    def reply(self, kind: str, behaviour: Behaviour) -> Decision:
        """What the provider makes of the service's behaviour on a question."""
        self.service.answers[ENDPOINT] = behaviour
        return self.backend.decide(Request.of(TASKS[kind], "m-1"))

    def answer(self, kind: str, **changes: Any) -> Decision:
        """What it makes of a good answer with changes; None leaves a field out."""
        answer = good(TASKS[kind].question.wire()) | changes
        return self.reply(
            kind, Answer(envelope({k: v for k, v in answer.items() if v is not None}))
        )

    def body(self, kind: str, **changes: Any) -> Decision:
        """What it makes of a good body with changes."""
        return self.reply(kind, Answer(envelope(good(TASKS[kind].question.wire())) | changes))


@pytest.fixture
def service() -> Iterator[ScriptedLlama]:
    with scripted_systemone() as running:
        yield running


@pytest.fixture
def asked(service: ScriptedLlama, tmp_path: Path) -> Iterator[Asked]:
    backend = SystemOne(settings(service.url), model_identity()).open(tmp_path)
    yield Asked(backend, service)
    backend.close()


@pytest.fixture
def tasks() -> dict[str, Task]:
    return TASKS
