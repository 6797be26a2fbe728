"""`resume=RUN`: go on with a run, or a sweep, that ended early, in a directory of its own."""

from argparse import Namespace
from pathlib import Path

from jevexp import run as experiment
from jevexp.cli.compose import compose_directory
from jevexp.cli.paths import check_paths, make_directory
from jevexp.cli.perform import console, perform_single
from jevexp.cli.resume_sweep import resume_sweep
from jevexp.cli.resumed_settings import resumed_settings
from jevexp.errors import InputError
from jevexp.run.adopting import adopt
from jevexp.run.earlier import read_earlier
from jevexp.store.directory import MANIFEST, RESULTS
from jevexp.untrusted.owners import permissions

RESUME = "resume="


def resume(parsed: Namespace) -> int:
    """Resume what the command line names; print what came of it.

    Args:
        parsed: what Hydra's own argument parser made of the command line.

    Raises:
        InputError: it cannot be resumed; nothing was written or sent.
    """
    first, *others = [one for one in parsed.overrides if one.startswith(RESUME)]
    if others:
        raise InputError("resume: given twice")
    if parsed.multirun or parsed.cfg or parsed.info:
        raise InputError("resume: takes its configuration from the run; leave the flags out")
    rest = [one for one in parsed.overrides if not one.startswith(RESUME)]
    path = Path(first.removeprefix(RESUME))
    if (path / RESULTS).exists() and not (path / MANIFEST).exists():
        raise InputError(
            f"resume: {path}: was killed before it asked anything; if it went on with another "
            "run, resume that one, which still holds every answer; else start it anew"
        )
    if path.is_dir() and not (path / MANIFEST).exists():
        return resume_sweep(path, first, rest)
    return resume_run(path, rest)


def resume_run(path: Path, overrides: list[str]) -> int:
    """Resume one run.

    Raises:
        InputError: it cannot be resumed.
    """
    earlier = read_earlier(path)
    (settings,), hydra = resumed_settings(path, [earlier.manifest.config.resolved], overrides)
    directory = compose_directory(settings, hydra)
    check_paths(directory, settings)
    plan = adopt(earlier, experiment.plan(settings))
    with permissions(group=settings.group_access):
        made = make_directory(directory)
        taken, asked = len(plan.tasks) - len(plan.to_ask), len(plan.to_ask)
        console.print(
            f"resuming {earlier.path}: {taken} answers are taken over, {asked} tasks are asked",
            markup=False,
            highlight=False,
        )
        launch = experiment.Launch(directory, overrides=(f"{RESUME}{path}", *overrides))
        return perform_single(plan, launch, made)
