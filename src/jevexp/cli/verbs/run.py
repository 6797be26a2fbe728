"""`jevexp run`: a run, or with -m a sweep of several; no verb means the same.

`resume=RUN` goes on with a run, or a sweep, that ended early, in a directory of its own.
"""

import os
import signal
import sys
import time
from argparse import Namespace
from collections import defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from rich.text import Text

from jevexp.cli import conf_dir
from jevexp.cli.compose import (
    Composition,
    check_composes,
    check_flags,
    compose_command,
    compose_directory,
    concurrency_suffix,
    quoted,
    search_path,
    to_settings,
)
from jevexp.cli.perform import (
    check_paths,
    console,
    make_directory,
    perform,
    perform_member,
    perform_single,
)
from jevexp.cli.resumed_settings import resumed_settings
from jevexp.cli.run_in_subprocess import run_in_subprocess
from jevexp.cli.run_view import report_sweep
from jevexp.cli.tracking import Tracking
from jevexp.cli.verbs import verbs_help
from jevexp.errors import InputError
from jevexp.harness.interrupts import Interrupted
from jevexp.run.planning import Launch, Plan, plan
from jevexp.run.resuming import adopt, charged_in, read_earlier
from jevexp.settings import Settings
from jevexp.settings.run import config_hash
from jevexp.store import RunDirectory, RunStatus
from jevexp.store.checksums import CHECKSUMS
from jevexp.store.directory import LEDGER, MANIFEST, RESULTS
from jevexp.store.finding import PlannedRun, SweepFile, read_sweep_file, sweep_members
from jevexp.untrusted.files import permissions
from jevexp.untrusted.python import safe_environment

_RESUME = "resume="
# The process that hands a sweep to Hydra; a launcher's other processes inherit the variable.
_LAUNCHED_BY = "JEVEXP_LAUNCHED_BY"
# Longer than a started process needs until it has its directory.
_QUIET_S = 10.0
_POLL_S = 0.2
_SHOWN_BY_HYDRA = ("help", "hydra_help", "cfg", "info", "shell_completion")


def main(arguments: Sequence[str]) -> int:
    """Run what the command line asks for and print what came of it.

    Raises InputError: it cannot be run or resumed; nothing was written or sent.
    """
    # Hydra wants its flags before the overrides; a person need not.
    parsed = get_args_parser().parse_intermixed_args(list(arguments))
    check_flags(parsed)
    if any(override.startswith(_RESUME) for override in parsed.overrides):
        return _resume(parsed)
    flags = list(reversed(arguments))
    for override in parsed.overrides:
        flags.remove(override)
    arguments = [*reversed(flags), *parsed.overrides]
    # Hydra answers these itself: help, the composed configuration, completion.
    if any(getattr(parsed, flag) for flag in _SHOWN_BY_HYDRA):
        check_composes(parsed)
        OmegaConf.register_new_resolver("verbs_help", verbs_help, replace=True)
        if not parsed.shell_completion:
            arguments.append(search_path(parsed.config_dir))
        _hand_to_hydra(arguments)
        return 0
    composition = compose_command(parsed)
    for settings in composition.settings:
        check_paths(composition.directory, settings)
    with permissions(group=any(settings.group_access for settings in composition.settings)):
        if composition.is_sweep:
            return _run_sweep(composition, [*arguments, search_path(parsed.config_dir)])
        single = plan(composition.settings[0])
        new_folders = make_directory(composition.directory)
        composition.write_hydra_files()
        launch = Launch(composition.directory, overrides=composition.overrides)
        return perform_single(single, launch, new_folders)


def _run_sweep(composition: Composition, arguments: Sequence[str]) -> int:
    """Check every run, hand them to Hydra's launcher, and print what came of them."""
    for settings in composition.settings:
        plan(settings)
    make_directory(composition.directory)
    if composition.fixed:
        planned = [PlannedRun(config=settings.resolved()) for settings in composition.settings]
        SweepFile(runs=planned).write(composition.directory)
    interrupted: Interrupted | None = None
    # Hydra would print what a launcher raises, and end this process.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    # A job in another process than this one was started by a launcher.
    os.environ[_LAUNCHED_BY] = str(os.getpid())
    try:
        # The same directory again, since a second composition would name another one.
        directory = f"hydra.sweep.dir={quoted(str(composition.directory))}"
        with safe_environment() if composition.launched else nullcontext():
            _hand_to_hydra([*arguments, directory])
    except Interrupted as signalled:
        interrupted = signalled
    except KeyboardInterrupt:
        # Between two runs, or while a launcher's other processes are at work.
        interrupted = Interrupted(signal.SIGINT)
    except (Exception, SystemExit) as error:  # noqa: BLE001  a plugin may raise anything
        # The runs that it has started still count.
        console.print(Text(f"the launcher gave up: {type(error).__name__}", style="red"))
        wait_for_runs(composition.directory, len(composition.settings))
    runs = composition.settings
    return _finish_sweep(composition.directory, len(runs), runs[0], interrupted)


def _finish_sweep(
    directory: Path,
    planned: int,
    settings: Settings,
    interrupted: Interrupted | None,
    elsewhere: Sequence[Path] = (),
) -> int:
    """Print what came of `planned` runs, and log their comparison; the exit status."""
    # `settings` say where it is logged. `elsewhere` are runs in an earlier sweep's directory.
    status = report_sweep(console, directory, planned, elsewhere)
    Tracking(settings, console).finish_sweep(directory, interrupted=interrupted is not None)
    return interrupted.exit_status if interrupted else status


def _hand_to_hydra(arguments: Sequence[str]) -> None:
    # Hydra reads sys.argv, and so do the launchers that start other processes.
    sys.argv = ["jevexp", *arguments]
    hydra.main(version_base="1.3", config_path=str(conf_dir().resolve()), config_name="config")(
        job
    )()


def wait_for_runs(sweep: Path, planned: int) -> None:
    """Wait until no run of a sweep is written any more.

    A launcher raises what its first lost worker raises, while others may still be at work.
    """
    last_seen = time.monotonic()
    while time.monotonic() - last_seen < _QUIET_S:
        runs = [RunDirectory(path) for path in sweep_members(sweep)]
        if any(run.in_use for run in runs):
            last_seen = time.monotonic()
        elif sum((run.path / CHECKSUMS).exists() for run in runs) == planned:
            return
        time.sleep(_POLL_S)


def job(config: DictConfig) -> None:
    """One run of a sweep, in whatever process Hydra's launcher starts it.

    The launching process reads in the run's directory how it ended.

    Raises Interrupted: a signal arrived; the one way to keep a sweep from going on.
    """
    settings = to_settings(config)
    state = HydraConfig.get()
    launch = Launch(
        directory=Path(state.runtime.output_dir),
        sweep=Path(state.sweep.dir).absolute(),
        overrides=tuple(state.overrides.task),
    )
    if os.environ.get(_LAUNCHED_BY) != str(os.getpid()):
        run_in_subprocess(settings, launch, number=state.job.num)
    else:
        perform_member(settings, launch, number=state.job.num)


def _resume(parsed: Namespace) -> int:
    """Resume what the command line names; print what came of it."""
    resumed, *others = [word for word in parsed.overrides if word.startswith(_RESUME)]
    if others:
        raise InputError("resume: given twice")
    if parsed.multirun or parsed.cfg or parsed.info:
        raise InputError("resume: takes its configuration from the run; leave the flags out")
    overrides = [word for word in parsed.overrides if not word.startswith(_RESUME)]
    path = Path(resumed.removeprefix(_RESUME))
    if (path / RESULTS).exists() and not (path / MANIFEST).exists():
        raise InputError(
            f"resume: {path}: was killed before it asked anything; if it went on with another "
            "run, resume that one, which still holds every answer; else start it anew"
        )
    if path.is_dir() and not (path / MANIFEST).exists():
        return _resume_sweep(path, overrides)
    earlier = read_earlier(path)
    (settings,), hydra_overrides = resumed_settings(
        path, [earlier.manifest.config.resolved], overrides
    )
    directory = compose_directory(settings, hydra_overrides)
    check_paths(directory, settings)
    planned = adopt(earlier, plan(settings))
    with permissions(group=settings.group_access):
        new_folders = make_directory(directory)
        taken, asked = len(planned.tasks) - len(planned.to_ask), len(planned.to_ask)
        console.print(
            f"resuming {earlier.path}: {taken} answers are taken over, {asked} tasks are asked",
            markup=False,
            highlight=False,
        )
        launch = Launch(directory, overrides=(f"{_RESUME}{path}", *overrides))
        return perform_single(planned, launch, new_folders)


@dataclass(frozen=True, slots=True)
class _Member:
    """One run of a resumed sweep: where it ended, or the plan that is to be performed."""

    settings: Settings
    ended_in: Path | None = None
    plan: Plan | None = None

    @property
    def goes_on_with(self) -> str | None:
        """The directory whose answers it takes over."""
        return self.plan.adoption.entry.path if self.plan and self.plan.adoption else None

    def name(self, number: int) -> str:
        """The name of its directory, as Hydra gives it to the runs of a sweep."""
        chosen = self.settings
        name = f"{number}-{chosen.dataset.name}-{chosen.model.name}-{chosen.backend.name}"
        return name + concurrency_suffix(chosen.runner.concurrency)


def _resume_sweep(path: Path, overrides: Sequence[str]) -> int:
    """Resume a sweep; everything is checked before anything is written."""
    earlier = read_sweep_file(path)
    settings, hydra_overrides = resumed_settings(
        path, [run.config for run in earlier.runs], overrides
    )
    started = _started_runs(path)
    charged_usd = earlier.charged_usd + charged_in(path / LEDGER)
    members = [
        _member(planned, chosen, started[config_hash(planned.config)], charged_usd)
        for planned, chosen in zip(earlier.runs, settings, strict=True)
    ]
    plans = [member.plan for member in members if member.plan]
    if not plans:
        raise InputError(f"resume: {path}: all its runs have ended; there is nothing left to ask")
    first = plans[0].settings
    directory = compose_directory(first, hydra_overrides, sweep=True)
    for planned in plans:
        check_paths(directory, planned.settings)
    with permissions(group=first.group_access):
        make_directory(directory)
        SweepFile(
            resumed=str(path.absolute()),
            charged_usd=charged_usd,
            runs=[
                PlannedRun(
                    config=member.settings.resolved(),
                    ended_in=str(member.ended_in.absolute()) if member.ended_in else None,
                    goes_on_with=member.goes_on_with,
                )
                for member in members
            ],
        ).write(directory)
        going_on = sum(planned.adoption is not None for planned in plans)
        console.print(
            f"resuming {path}: {len(members) - len(plans)} of {len(members)} runs have ended, "
            f"{going_on} go on, {len(plans) - going_on} start"
        )
        interrupted = None
        for number, member in enumerate(members):
            if member.plan is None or interrupted:
                continue
            launch = Launch(
                directory / member.name(number),
                directory.absolute(),
                (f"{_RESUME}{path}", *overrides),
            )
            tracking = Tracking(member.settings, console)
            outcome = perform(member.plan, launch, tracking, number=number)
            interrupted = outcome.signal if outcome else None
        elsewhere = [member.ended_in for member in members if member.ended_in]
        return _finish_sweep(directory, len(members), first, interrupted, elsewhere)


def _started_runs(sweep: Path) -> defaultdict[str, list[tuple[Path, str | None]]]:
    """The runs that a sweep left behind, with what each went on with, by configuration's hash."""
    started = defaultdict(list)
    for path in sweep_members(sweep):
        if (path / MANIFEST).exists():
            manifest = RunDirectory(path).read_manifest()
            if manifest.status is not RunStatus.REFUSED:
                resumed = manifest.resumed.path if manifest.resumed else None
                started[manifest.config.sha256].append((path, resumed))
    return started


def _member(
    planned: PlannedRun,
    settings: Settings,
    started: list[tuple[Path, str | None]],
    charged_usd: float,
) -> _Member:
    """One run of a resumed sweep."""
    # `started` are the earlier sweep's runs with its configuration; the one that is used is
    # removed.
    if planned.ended_in is not None:
        return _Member(settings, ended_in=Path(planned.ended_in))
    # A sweep may end before a run takes over the answers of an older one, which still holds them.
    older = planned.goes_on_with
    path = Path(older) if older else None
    for run in started:
        if older is None or run[1] == older:
            started.remove(run)
            path = run[0]
            break
    earlier = read_earlier(path, ended=True) if path else None
    if earlier is not None:
        counts = earlier.manifest.counts
        if (earlier.path / CHECKSUMS).exists() and counts.answered == counts.requested:
            return _Member(settings, ended_in=earlier.path)
    new = replace(plan(settings), charged_before_usd=charged_usd)
    if earlier is not None:
        new = adopt(earlier, new, charged_usd=charged_usd)
    return _Member(settings, plan=new)
