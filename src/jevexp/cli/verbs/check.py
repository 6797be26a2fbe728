"""`jevexp check`: everything up to a few real requests, leaving nothing."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from jevexp.backends.protocol import Backend
from jevexp.cli.compose import compose_command
from jevexp.cli.console import make_console
from jevexp.cli.end_of_run import STRAY_MASS
from jevexp.cli.identity_view import identity_lines, identity_table
from jevexp.cli.paths import check_paths
from jevexp.cli.verbs.plan import estimate, overrides_of
from jevexp.core.decision import Decision, Request
from jevexp.core.identity import ClaimStatus
from jevexp.core.task import Kind, Task
from jevexp.errors import InputError
from jevexp.harness.scoring import score
from jevexp.run import planning, running
from jevexp.settings import Settings
from jevexp.tracking import TrackingError, make_trackers


def main(arguments: Sequence[str]) -> int:
    """Check one run's configuration against the world; 0 when it can be started.

    Raises:
        InputError: something is not usable as configured.
    """
    parsed = overrides_of(
        arguments,
        "check",
        "Do everything up to one real request of each kind, and leave nothing behind.",
    )
    composition = compose_command(parsed)
    if composition.is_sweep:
        raise InputError("check: one run at a time; `jevexp plan -m …` looks at a whole sweep")
    (settings,) = composition.settings
    check_paths(composition.directory, settings)
    console = make_console()
    report = Report(console)
    _check_caps(settings, report)
    plan = planning.plan(settings)
    report.good("dataset", f"{len(plan.tasks)} tasks, {plan.dataset.dataset_hash[:12]}…")
    backend = plan.backend
    with tempfile.TemporaryDirectory(prefix="jevexp-check-") as folder:
        try:
            backend.open(Path(folder))
            _check_provider(settings, backend, plan.tasks, report)
        finally:
            backend.close()
    _check_tracking(settings, report)
    console.print(Text(report.last_line()))
    return report.status


class Report:
    """A line a check, and the exit status over all of them."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.status = 0
        self._warnings = 0

    def good(self, what: str, how: str) -> None:
        """A check that holds."""
        self._line("ok", "green", what, how)

    def doubtful(self, what: str, how: str) -> None:
        """Something a person should look at, which does not stop a run."""
        self._warnings += 1
        self._line("warning", "bold yellow", what, how)

    def bad(self, what: str, how: str, status: int) -> None:
        """A check that does not hold."""
        self.status = max(self.status, status)
        self._line("failed", "bold red", what, how)

    def last_line(self) -> str:
        """The result in one line."""
        if self.status:
            return "not ready: see above"
        return f"ready, with {self._warnings} warnings" if self._warnings else "ready"

    def _line(self, word: str, style: str, what: str, how: str) -> None:
        line = Text.assemble((f"{word:<8}", style), f"{what:<10}", how)
        self.console.print(line)


def _check_caps(settings: Settings, report: Report) -> None:
    planned = estimate(settings)
    numbers = f"reserves ${planned.reservation_usd:.2f}, the cap leaves ${planned.left_usd:.2f}"
    if planned.impossible:
        report.bad("caps", f"{numbers}; raise caps.cap_usd or lower caps.limit", 2)
    else:
        report.good("caps", numbers)


def _check_provider(
    settings: Settings, backend: Backend, tasks: Sequence[Task], report: Report
) -> None:
    description = backend.describe()
    report.good("provider", _where(description))
    identity = running.identify(settings, description)
    if identity.report.status is ClaimStatus.CONTRADICTED:
        report.console.print(identity_table(identity.report))
        status = 2 if settings.identity == "strict" else 0
        reason = identity.report.reason() or ""
        if status:
            report.bad("identity", reason, status)
            return
        report.doubtful("identity", reason)
    else:
        report.good("identity", f"{identity.report.status.words} · {identity.fingerprint.value}")
    for line in identity_lines(identity.report):
        report.console.print(line)
    for kind in Kind:
        task = next((task for task in tasks if task.kind is kind), None)
        if task is not None:
            decision = backend.decide(Request.of(task, settings.model.alias))
            _check_decision(task, decision, report)


def _check_decision(task: Task, decision: Decision, report: Report) -> None:
    what = task.kind.value
    if not decision.ok:
        status = f" (HTTP {decision.status_code})" if decision.status_code else ""
        report.bad(what, f"{decision.error}{status}", 1)
        return
    verdict = score(task, decision)
    if not verdict.valid or verdict.probs is None:
        report.bad(what, verdict.schema_error or "no distribution", 1)
        return
    shares = ", ".join(f"{label} {p:.3f}" for label, p in verdict.probs.items())
    stray = (decision.runtime or {}).get("off_option_mass")
    if stray is None:
        report.good(what, shares)
    elif stray > STRAY_MASS:
        report.doubtful(what, f"{shares}; {stray:.1%} of the probability is on no option")
    else:
        report.good(what, f"{shares}; off-option mass {stray:.2g}")


def _check_tracking(settings: Settings, report: Report) -> None:
    trackers = make_trackers(settings.tracking, Path(settings.outputs))
    if not trackers:
        report.good("tracking", "none")
    for name, tracker in trackers.items():
        title = "tracking" if name == "mlflow" else name
        try:
            report.good(title, tracker.check())
        except TrackingError as error:
            report.doubtful(title, f"{error}; a run would be complete and untracked")


def _where(description: dict[str, Any]) -> str:
    model = description.get("model")
    if description.get("managed"):
        return f"started here, serves {model}"
    url = description.get("base_url")
    return f"{url} serves {model}" if url else f"{model}"
