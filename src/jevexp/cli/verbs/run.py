"""`jevexp run`: a run, or with -m a sweep of several; no verb means the same."""

import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from contextlib import nullcontext
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
    quoted,
    search_path,
    to_settings,
)
from jevexp.cli.end_of_run import report_sweep
from jevexp.cli.paths import check_paths, make_directory
from jevexp.cli.perform import console, perform_member, perform_single, tracking_of
from jevexp.cli.run_in_subprocess import run_in_subprocess
from jevexp.cli.verbs import verbs_help
from jevexp.harness.interrupts import Interrupted
from jevexp.run.planning import Launch, plan
from jevexp.store import RunDirectory
from jevexp.store.checksums import CHECKSUMS
from jevexp.store.finding import SweepFile, sweep_members
from jevexp.untrusted.files import permissions
from jevexp.untrusted.python import safe_environment

# The process that hands a sweep to Hydra; a launcher's other processes inherit the variable.
_LAUNCHED_BY = "JEVEXP_LAUNCHED_BY"
# Longer than a started process needs until it has its directory.
_QUIET_S = 10.0
_POLL_S = 0.2


def main(arguments: Sequence[str]) -> int:
    """Run what the command line asks for and print what came of it."""
    # Hydra wants its flags before the overrides; a person need not.
    parsed = get_args_parser().parse_intermixed_args(list(arguments))
    check_flags(parsed)
    if any(override.startswith("resume=") for override in parsed.overrides):
        from jevexp.cli.resume import resume

        return resume(parsed)
    arguments = [*_flags(arguments, parsed.overrides), *parsed.overrides]
    if _only_shows(parsed):
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
        made = make_directory(composition.directory)
        composition.write_hydra_files()
        launch = Launch(composition.directory, overrides=composition.overrides)
        return perform_single(single, launch, made)


def _run_sweep(composition: Composition, arguments: Sequence[str]) -> int:
    """Check every run, hand them to Hydra's launcher, and print what came of them."""
    for settings in composition.settings:
        plan(settings)
    make_directory(composition.directory)
    if composition.fixed:
        SweepFile.of(composition.settings).write(composition.directory)
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
    status = report_sweep(console, composition.directory, len(composition.settings))
    tracking_of(composition.settings[0]).finish_sweep(
        composition.directory, interrupted=interrupted is not None
    )
    return interrupted.exit_status if interrupted else status


def _flags(arguments: Sequence[str], overrides: Sequence[str]) -> list[str]:
    flags = list(reversed(arguments))
    for override in overrides:
        flags.remove(override)
    return flags[::-1]


def _only_shows(parsed: Namespace) -> bool:
    """Whether Hydra answers this itself: help, the composed configuration, completion."""
    shows = (parsed.help, parsed.hydra_help, parsed.cfg, parsed.info, parsed.shell_completion)
    return any(shows)


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

    Raises:
        Interrupted: a signal arrived; the one way to keep a sweep from going on.
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
