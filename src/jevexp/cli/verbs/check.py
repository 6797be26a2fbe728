"""`jevexp check`: everything up to a few real requests, leaving nothing."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from jevexp.backends.causes import Failed, Service
from jevexp.backends.protocol import Foresees
from jevexp.cli.compose import compose_command
from jevexp.cli.console import make_console
from jevexp.cli.failures import ROUNDS, are_rounded, may_round, service_of
from jevexp.cli.perform import check_paths
from jevexp.cli.run_view import STRAY_MASS, identity_findings, identity_table
from jevexp.cli.verbs.plan import estimate, overrides_of
from jevexp.core.decision import Decision, Request
from jevexp.core.identity import ClaimStatus
from jevexp.core.task import Kind, Task
from jevexp.errors import InputError
from jevexp.harness.scoring import score
from jevexp.run import planning
from jevexp.run.running import identify
from jevexp.store.manifest import warnings_of
from jevexp.tracking import TrackingError, make_trackers

_TOKEN_COUNTS = ("input_tokens", "output_tokens")


def main(arguments: Sequence[str]) -> int:
    """Check one run's configuration against the world; 0 when it can be started.

    Raises InputError: something is not usable as configured.
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
    report = _Report(make_console())
    planned = estimate(settings)
    numbers = f"reserves ${planned.reservation_usd:.2f}, the cap leaves ${planned.left_usd:.2f}"
    if planned.impossible:
        report.bad("caps", f"{numbers}; raise caps.cap_usd or lower caps.limit", 2)
    else:
        report.good("caps", numbers)
    plan = planning.plan(settings)
    report.good("dataset", f"{len(plan.tasks)} tasks, {plan.dataset.dataset_hash[:12]}…")
    with tempfile.TemporaryDirectory(prefix="jevexp-check-") as folder:
        try:
            plan.backend.open(Path(folder))
            _check_provider(plan, report)
        finally:
            plan.backend.close()
    trackers = make_trackers(settings.tracking, Path(settings.outputs))
    if not trackers:
        report.good("tracking", "none")
    for name, tracker in trackers.items():
        title = "tracking" if name == "mlflow" else name
        try:
            report.good(title, tracker.check())
        except TrackingError as error:
            report.doubtful(title, f"{error}; a run would be complete and untracked")
    report.finish()
    return report.status


class _Report:
    """A line a check, and the exit status over all of them."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.status = 0
        self._warnings = 0

    def good(self, check: str, result: str) -> None:
        self._line("ok", "green", check, result)

    def doubtful(self, check: str, result: str) -> None:
        """Something a person should look at, which does not stop a run."""
        self._warnings += 1
        self._line("warning", "bold yellow", check, result)

    def bad(self, check: str, result: str, status: int) -> None:
        self.status = max(self.status, status)
        self._line("failed", "bold red", check, result)

    def finish(self) -> None:
        warnings = f", with {self._warnings} warnings" if self._warnings else ""
        self.console.print(Text("not ready: see above" if self.status else f"ready{warnings}"))

    def _line(self, word: str, style: str, check: str, result: str) -> None:
        self.console.print(Text.assemble((f"{word:<8}", style), f"{check:<10}", result))


def _check_provider(plan: planning.Plan, report: _Report) -> None:
    settings, backend = plan.settings, plan.backend
    description = backend.describe()
    model, url = description.get("model"), description.get("base_url")
    served = f"serves {model}" if model else "names its model in each answer"
    if description.get("managed"):
        report.good("provider", f"started here, {served}")
    else:
        report.good("provider", f"{url} {served}" if url else f"{model}")
    for warning in warnings_of(description):
        report.doubtful("provider", warning)
    identity = identify(settings, description)
    if identity.report.status is ClaimStatus.CONTRADICTED:
        report.console.print(identity_table(identity.report))
        reason = identity.report.reason() or ""
        if settings.identity == "strict":
            report.bad("identity", reason, 2)
            return
        report.doubtful("identity", reason)
    else:
        report.good("identity", f"{identity.report.status.words} · {identity.fingerprint.value}")
    for line in identity_findings(identity.report):
        report.console.print(line)
    service = service_of(settings.backend.model_dump(mode="json"))
    decisions: list[Decision] = []
    for kind in Kind:
        why_not = backend.why_unaskable if isinstance(backend, Foresees) else lambda _: None
        of_kind = (task for task in plan.tasks if task.kind is kind)
        task = next((task for task in of_kind if not why_not(task)), None)
        if task is not None:
            decisions.append(backend.decide(Request.of(task, settings.model.alias)))
            _check_decision(task, decisions[-1], service, report)
    _check_answers([decision for decision in decisions if decision.ok], plan, report)


def _check_answers(answers: Sequence[Decision], plan: planning.Plan, report: _Report) -> None:
    """What a run would fail at, or end with, though each single answer is one."""
    settings = plan.settings
    pricing = settings.pricing
    counts = [answer.usage.get(name) for answer in answers for name in _TOKEN_COUNTS]
    if (pricing.input_per_m or pricing.output_per_m) and None in counts:
        report.doubtful(
            "usage",
            "the service does not say how many tokens it took: each task is charged the whole "
            f"reservation of ${settings.caps.reserve_usd:g}",
        )
    for name in dict.fromkeys(answer.model for answer in answers):
        if name != settings.model.alias:
            report.doubtful(
                "model",
                f"{settings.model.alias} is asked, {name} answers, which the service may change",
            )
    if are_rounded(a.probs for a in answers if may_round(a.status_code, a.probs_source)):
        report.doubtful("rounding", ROUNDS)


def _check_decision(task: Task, decision: Decision, service: Service, report: _Report) -> None:
    kind = task.kind.value
    if not decision.ok:
        failed = Failed(decision.error or "", decision.status_code, decision.response)
        todo = failed.todo(service)
        report.bad(kind, f"{failed.cause}{f'; {todo}' if todo else ''}", 1)
        return
    verdict = score(task, decision)
    if not verdict.valid or verdict.probs is None:
        report.bad(kind, verdict.schema_error or "no distribution", 1)
        return
    shares = ", ".join(f"{label} {p:.3f}" for label, p in verdict.probs.items())
    stray = (decision.runtime or {}).get("off_option_mass")
    if stray is None:
        report.good(kind, shares)
    elif stray > STRAY_MASS:
        report.doubtful(kind, f"{shares}; {stray:.1%} of the probability is on no option")
    else:
        report.good(kind, f"{shares}; off-option mass {stray:.2g}")
