"""`jevexp plan`: what a command line would run, touching nothing."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass

from hydra._internal.utils import get_args_parser
from rich.text import Text

from jevexp.backends.protocol import foreseen_before
from jevexp.cli.compose import compose_command
from jevexp.cli.console import make_console, make_table
from jevexp.cli.perform import check_paths
from jevexp.datasets import FileState, file_state, load_dataset
from jevexp.run.planning import check_ledger
from jevexp.settings import Settings


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one run would ask and reserve. Money is in US dollars.

    Attributes:
        tasks: how many tasks would be put to the provider, one request each.
        to_download: pinned files that are not in the cache yet.
        reservation_usd: what all requests reserve together.
        left_usd: what the cap leaves, after what a shared ledger was charged already.
        certain: whether the whole reservation will be charged, since no cost can be known.
        unaskable: which tasks that are here the provider will not answer, in one line.
    """

    settings: Settings
    tasks: int
    to_download: int
    reservation_usd: float
    left_usd: float
    certain: bool
    unaskable: str | None

    @property
    def impossible(self) -> bool:
        """Whether the cap is certain to end the run before its last task."""
        return self.certain and self.reservation_usd > self.left_usd + 1e-9


def main(arguments: Sequence[str]) -> int:
    """Print every run of the command line; 2 when one of them cannot succeed."""
    parsed = overrides_of(
        arguments, "plan", "Print what a command line would run, and touch nothing."
    )
    composition = compose_command(parsed)
    for settings in composition.settings:
        check_paths(composition.directory, settings)
    estimates = [estimate(settings) for settings in composition.settings]
    table = make_table(
        *("run", "choices", ">tasks", ">requests", ">reserves", ">cap leaves", ">downloads")
    )
    for index, run in enumerate(estimates):
        table.add_row(
            str(index),
            Text(_choices(run.settings)),
            str(run.tasks),
            str(run.tasks),
            f"${run.reservation_usd:.2f}",
            f"${run.left_usd:.2f}",
            str(run.to_download),
        )
    console = make_console()
    console.print(table)
    console.print(Text(f"directory: {composition.directory}"))
    for index, run in enumerate(estimates):
        if run.unaskable:
            console.print(Text(f"warning: run {index}: {run.unaskable}", style="bold yellow"))
    faults = _faults(estimates, shared=composition.is_sweep)
    for fault in faults:
        console.print(Text(f"cannot succeed: {fault}", style="red"))
    return 2 if faults else 0


def overrides_of(arguments: Sequence[str], verb: str, description: str) -> Namespace:
    """Parse a verb's command line with Hydra's own parser.

    Raises SystemExit: with status 0 after printing the verb's help, with 2 for an unknown flag.
    """
    parser = get_args_parser()
    parser.prog = f"jevexp {verb}"
    # Hydra wants its flags before the overrides; a person need not.
    parsed = parser.parse_intermixed_args(list(arguments))
    if parsed.help:
        print(f"usage: jevexp {verb} [-m] [--config-dir DIR] [GROUP=OPTION | FIELD=VALUE ...]")
        print(
            f"\n{description}\n\nGroups, options and fields are those of a run: see jevexp --help."
        )
        raise SystemExit(0)
    return parsed


def estimate(settings: Settings) -> Estimate:
    """What a run would do; reads only files that are on this machine.

    Raises InputError: the tasks or the ledger that are here cannot be used, or the provider answers
    none of the tasks.
    """
    caps = settings.caps
    missing = [
        pin
        for pin in settings.dataset.files
        if settings.dataset.source == "pinned"
        and not settings.dataset.path
        and file_state(pin) is not FileState.CACHED
    ]
    unaskable = None
    if missing:
        available = sum(pin.tasks for pin in settings.dataset.files)
    else:
        here = load_dataset(settings.dataset).tasks
        available = len(here)
        unaskable = foreseen_before(settings.backend, settings.model, here[: caps.limit])
    tasks = min(available, caps.limit or available)
    cap, charged = check_ledger(settings)
    pricing = settings.pricing
    return Estimate(
        settings=settings,
        tasks=tasks,
        to_download=len(missing),
        reservation_usd=tasks * caps.reserve_usd,
        left_usd=max(0.0, cap - charged),
        certain=pricing.input_per_m is None or pricing.output_per_m is None,
        unaskable=unaskable,
    )


def _choices(settings: Settings) -> str:
    """What was chosen in each group, as it stands in the configuration."""
    chosen = {
        "dataset": settings.dataset.name,
        "backend": settings.backend.name,
        "model": f"{settings.model.name} ({settings.model.alias})",
        "caps": settings.caps.name,
        "pricing": settings.pricing.name,
        "harness": settings.harness.name,
        "tracking": settings.tracking.kind,
        "identity": settings.identity,
    }
    return "\n".join(f"{group} {name}" for group, name in chosen.items())


def _faults(estimates: Sequence[Estimate], *, shared: bool) -> list[str]:
    """Why runs cannot succeed; the runs of a sweep share one cap unless they name ledgers."""
    faults = [
        f"run {index} reserves ${run.reservation_usd:.2f} and the cap leaves ${run.left_usd:.2f}; "
        "raise caps.cap_usd, lower caps.reserve_usd or caps.limit"
        for index, run in enumerate(estimates)
        if run.impossible
    ]
    certain = [
        run
        for run in estimates
        if run.certain and run.settings.caps.ledger is run.settings.caps.ledger_url is None
    ]
    total = sum(run.reservation_usd for run in certain)
    cap = min((run.left_usd for run in certain), default=0.0)
    if shared and not faults and total > cap + 1e-9:
        faults.append(
            f"the sweep reserves ${total:.2f} and its cap is ${cap:.2f}; raise caps.cap_usd, "
            "lower caps.reserve_usd or caps.limit"
        )
    return faults
