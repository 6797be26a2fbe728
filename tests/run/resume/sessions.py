"""Runs that end early and are resumed, in this process, with a provider that does as it is told."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from jevexp.core.decision import Decision, Request
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.datasets import load_dataset
from jevexp.run import planning, running
from jevexp.run.resuming import adopt, read_earlier
from jevexp.settings import Settings
from jevexp.store import Manifest, RunDirectory
from tests.support.compose import compose
from tests.support.provider import Provider, Step
from tests.support.tasks import answer, failure

TASKS = 6


@cache
def settings(*overrides: str) -> Settings:
    """The first demo tasks, at no cost."""
    backend = ("backend=python", "backend.factory=patched.in:desk")
    limit = f"caps.limit={TASKS}"
    return compose("dataset=demo", limit, "tracking=none", *backend, *overrides)


def right(request: Request) -> Decision:
    """An answer that is valid for any question."""
    options = request.question.options
    return said(request, dict.fromkeys(options, 1 / len(options)))


def said(request: Request, probs: Mapping[str, float], **changed: Any) -> Decision:
    """An answer with raw evidence like that of a model in this process."""
    return answer(probs, request=request.wire(), response={"probabilities": dict(probs)}, **changed)


def invalid(request: Request) -> Decision:
    """An answer that is no distribution."""
    return said(request, {"no": 3.0})


def failed(request: Request) -> Decision:
    """A failure that is known."""
    return failure("timeout", request=request.wire())


class Named(Provider):
    """A provider under the name that the settings have."""

    name = "python"


class Crash(SystemExit):
    """Ends a run where it is raised; it is completed and sealed as crashed."""


class Killed(BaseException):
    """Ends a run where it is raised, with everything on disk as it was."""


class Silent:
    """An observer that has nothing to say."""

    def started(self, plan: planning.Plan) -> None: ...

    def recorded(self, record: Record) -> None: ...

    def stopping(self) -> None: ...

    def finished(self) -> None: ...


@dataclass(frozen=True)
class Session:
    """One sitting: its directory, and what its provider was asked."""

    path: Path
    provider: Provider

    @property
    def manifest(self) -> Manifest:
        return RunDirectory(self.path).read_manifest()

    @property
    def records(self) -> list[Record]:
        return list(RunDirectory(self.path).records())

    @property
    def ids(self) -> list[str]:
        return [record.task_id for record in self.records]

    @property
    def lines(self) -> list[bytes]:
        return (self.path / "results.jsonl").read_bytes().splitlines()

    @property
    def raw(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (self.path / "raw").iterdir()}


@dataclass
class Desk:
    """Runs and resumes one after the other, each in a directory of its own."""

    folder: Path
    patch: pytest.MonkeyPatch
    sessions: list[Session] = field(default_factory=list)

    def __post_init__(self) -> None:
        # What a plan checks beforehand; who really answers is said for each session.
        self.patch.setattr(planning, "make_backend", lambda *arguments: Named(right))

    def run(self, *steps: Step, using: Settings | None = None) -> Session:
        """A run from the start."""
        return self._perform(planning.plan(using or settings()), Named(*steps))

    def resume(self, of: Session, *steps: Step, using: Settings | None = None) -> Session:
        """A run that goes on with another one."""
        plan = adopt(read_earlier(of.path), planning.plan(using or settings()))
        return self._perform(plan, Named(*steps or (right,)))

    def _perform(self, plan: planning.Plan, provider: Provider) -> Session:
        path = self.folder / f"run-{len(self.sessions)}"
        session = Session(path, provider)
        self.sessions.append(session)
        with self.patch.context() as patch:
            if any(isinstance(step, Killed) for step in provider.steps):
                patch.setattr(RunDirectory, "place_adopted", lambda directory: None)
            with suppress(Killed):
                running.run(
                    replace(plan, backend=provider), planning.Launch(path), Silent(), _untracked
                )
        return session


def _untracked(directory: RunDirectory, tasks: Sequence[Task]) -> None:
    """No tracking."""


def order() -> list[str]:
    """The ids of the tasks, in the dataset's order."""
    tasks = load_dataset(settings().dataset).tasks
    return [task.id for task in tasks[:TASKS]]
