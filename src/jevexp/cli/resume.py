"""`resume=RUN`: go on with a run, or a sweep, that ended early, in a directory of its own."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jevexp.cli.compose import compose_directory, concurrency_suffix
from jevexp.cli.end_of_run import report_sweep
from jevexp.cli.paths import check_paths, make_directory
from jevexp.cli.perform import console, perform, perform_single, tracking_of
from jevexp.cli.resumed_settings import resumed_settings
from jevexp.errors import InputError
from jevexp.harness.interrupts import Interrupted
from jevexp.run import planning
from jevexp.run.resuming import Earlier, adopt, charged_in, read_earlier
from jevexp.settings import Settings
from jevexp.settings.run import config_hash
from jevexp.store import RunDirectory, RunStatus
from jevexp.store.checksums import CHECKSUMS
from jevexp.store.directory import LEDGER, MANIFEST, RESULTS
from jevexp.store.finding import PlannedRun, SweepFile, read_sweep_file, sweep_members
from jevexp.untrusted.files import permissions

RESUME = "resume="


def resume(parsed: Namespace) -> int:
    """Resume what the command line names; print what came of it.

    Args:
        parsed: what Hydra's own argument parser made of the command line.

    Raises:
        InputError: it cannot be resumed; nothing was written or sent.
    """
    given, *others = [word for word in parsed.overrides if word.startswith(RESUME)]
    if others:
        raise InputError("resume: given twice")
    if parsed.multirun or parsed.cfg or parsed.info:
        raise InputError("resume: takes its configuration from the run; leave the flags out")
    overrides = [word for word in parsed.overrides if not word.startswith(RESUME)]
    path = Path(given.removeprefix(RESUME))
    if (path / RESULTS).exists() and not (path / MANIFEST).exists():
        raise InputError(
            f"resume: {path}: was killed before it asked anything; if it went on with another "
            "run, resume that one, which still holds every answer; else start it anew"
        )
    if path.is_dir() and not (path / MANIFEST).exists():
        return _resume_sweep(path, given, overrides)
    return _resume_run(path, overrides)


def _resume_run(path: Path, overrides: list[str]) -> int:
    """Resume one run.

    Raises:
        InputError: it cannot be resumed.
    """
    earlier = read_earlier(path)
    (settings,), hydra = resumed_settings(path, [earlier.manifest.config.resolved], overrides)
    directory = compose_directory(settings, hydra)
    check_paths(directory, settings)
    plan = adopt(earlier, planning.plan(settings))
    with permissions(group=settings.group_access):
        made = make_directory(directory)
        taken, asked = len(plan.tasks) - len(plan.to_ask), len(plan.to_ask)
        console.print(
            f"resuming {earlier.path}: {taken} answers are taken over, {asked} tasks are asked",
            markup=False,
            highlight=False,
        )
        launch = planning.Launch(directory, overrides=(f"{RESUME}{path}", *overrides))
        return perform_single(plan, launch, made)


@dataclass(frozen=True, slots=True)
class _Run:
    """One planned run: where it ended, or the plan that is to be performed."""

    number: int
    settings: Settings
    ended_in: Path | None
    plan: planning.Plan | None

    @property
    def name(self) -> str:
        """The name of its directory, as Hydra gives it to the runs of a sweep."""
        chosen = self.settings
        name = f"{self.number}-{chosen.dataset.name}-{chosen.model.name}-{chosen.backend.name}"
        return name + concurrency_suffix(chosen.runner.concurrency)

    @property
    def goes_on_with(self) -> str | None:
        """The directory whose answers it takes over."""
        return self.plan.adoption.entry.path if self.plan and self.plan.adoption else None


def _resume_sweep(path: Path, given: str, overrides: list[str]) -> int:
    """Resume a sweep; everything is checked before anything is written.

    Raises:
        InputError: it cannot be resumed.
    """
    earlier = read_sweep_file(path)
    settings, hydra = resumed_settings(path, [run.config for run in earlier.runs], overrides)
    earlier_runs = _EarlierRuns(path)
    charged_usd = earlier.charged_usd + charged_in(path / LEDGER)
    runs = [
        _planned(number, planned, settings[number], earlier_runs, charged_usd)
        for number, planned in enumerate(earlier.runs)
    ]
    to_perform = [run for run in runs if run.plan]
    if not to_perform:
        raise InputError(f"resume: {path}: all its runs have ended; there is nothing left to ask")
    directory = compose_directory(to_perform[0].settings, hydra, sweep=True)
    for run in to_perform:
        check_paths(directory, run.settings)
    with permissions(group=to_perform[0].settings.group_access):
        make_directory(directory)
        SweepFile(
            resumed=str(path.absolute()),
            charged_usd=charged_usd,
            runs=[
                PlannedRun(
                    config=run.settings.resolved(),
                    ended_in=str(run.ended_in.absolute()) if run.ended_in else None,
                    goes_on_with=run.goes_on_with,
                )
                for run in runs
            ],
        ).write(directory)
        console.print(
            f"resuming {path}: {len(runs) - len(to_perform)} of {len(runs)} runs have ended, "
            f"{sum(run.plan is not None and run.plan.adoption is not None for run in runs)} go on, "
            f"{sum(run.plan is not None and run.plan.adoption is None for run in runs)} start"
        )
        interrupted = _perform(to_perform, directory, (given, *overrides))
        status = report_sweep(
            console, directory, len(runs), [run.ended_in for run in runs if run.ended_in]
        )
        tracking_of(to_perform[0].settings).finish_sweep(
            directory, interrupted=interrupted is not None
        )
        return interrupted.exit_status if interrupted else status


def _perform(
    runs: Sequence[_Run], directory: Path, overrides: tuple[str, ...]
) -> Interrupted | None:
    """Perform the runs one after the other; the signal that ended that early, if one did."""
    for run in runs:
        if (plan := run.plan) is None:
            continue
        launch = planning.Launch(directory / run.name, directory.absolute(), overrides)
        outcome = perform(plan, launch, tracking_of(run.settings), number=run.number)
        if outcome and outcome.signal:
            return outcome.signal
    return None


def _planned(
    number: int,
    planned: PlannedRun,
    settings: Settings,
    earlier_runs: "_EarlierRuns",
    charged_usd: float,
) -> _Run:
    if planned.ended_in is not None:
        return _Run(number, settings, Path(planned.ended_in), None)
    earlier = earlier_runs.take(config_hash(planned.config), planned.goes_on_with)
    if earlier is not None and _has_ended(earlier):
        return _Run(number, settings, earlier.path, None)
    plan = replace(planning.plan(settings), charged_before_usd=charged_usd)
    if earlier is not None:
        plan = adopt(earlier, plan, charged_usd=charged_usd)
    return _Run(number, settings, None, plan)


def _has_ended(earlier: Earlier) -> bool:
    counts = earlier.manifest.counts
    return (earlier.path / CHECKSUMS).exists() and counts.answered == counts.requested


class _EarlierRuns:
    """The runs that a sweep left behind, by the hash of their configuration."""

    def __init__(self, sweep: Path) -> None:
        self._by_config: dict[str, list[tuple[Path, str | None]]] = {}
        for path in sweep_members(sweep):
            if not (path / MANIFEST).exists():
                continue
            manifest = RunDirectory(path).read_manifest()
            if manifest.status is not RunStatus.REFUSED:
                resumed = manifest.resumed.path if manifest.resumed else None
                runs = self._by_config.setdefault(manifest.config.sha256, [])
                runs.append((path, resumed))

    def take(self, config_hash: str, goes_on_with: str | None) -> Earlier | None:
        """The next run with this configuration; None where none was started.

        Args:
            config_hash: of its configuration.
            goes_on_with: the run that it was to go on with, which still holds the answers where
                the sweep ended before it took them over.

        Raises:
            InputError: it is still being written.
        """
        runs = self._by_config.get(config_hash, [])
        for run in runs:
            path, resumed = run
            if goes_on_with is None or resumed == goes_on_with:
                runs.remove(run)
                return read_earlier(path, ended=True)
        return read_earlier(Path(goes_on_with), ended=True) if goes_on_with else None
