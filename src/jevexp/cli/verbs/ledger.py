"""`jevexp ledger show|release`: what is spent of a cap, and what is reserved; or export."""

import argparse
import getpass
import socket
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.prompt import Confirm
from rich.table import Table
from rich.text import Text

from jevexp.cli.console import make_console, make_parser, make_table, print_json
from jevexp.core.json import dumps
from jevexp.errors import InputError
from jevexp.ledger.base import OpenReservation
from jevexp.ledger.location import LedgerFile, LedgerLocation, ledger_database
from jevexp.ledger.state import LedgerError
from jevexp.settings import EnvironmentVariable, FrozenSettings, check_ledger_url
from jevexp.store.directory import LEDGER, MANIFEST, RunDirectory
from jevexp.untrusted.addresses import check_database_address, redacted
from jevexp.untrusted.console import printable_json

# What a settlement says that a person made in place of a process that is gone.
RELEASED = "released"
_SHORTEST_PREFIX = 6
_ALIVE = {True: "alive", False: "dead", None: "not known"}
_STYLE = {True: "green", False: "red", None: ""}


def main(argv: Sequence[str]) -> int:
    """Run the verb; 0, or 1 when a person says no.

    Raises InputError: there is no such ledger or reservation, or its process is alive.
    """
    arguments = _parser().parse_args(argv)
    location = _location(arguments.ledger, arguments.password_env)
    try:
        if arguments.verb == "show":
            return _show(arguments, location)
        if arguments.verb == "release":
            return _release(arguments, location)
        with location.open(0.0, read_only=True) as ledger:
            for row in ledger.rows():
                print(printable_json(dumps(row)))
        return 0
    except LedgerError as error:
        raise InputError(str(error)) from error


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        "ledger", "Look at a ledger, release what a dead process reserved, export its rows."
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="show|release|export")
    for verb, text in (
        ("show", "cap, charges and open reservations of a ledger, or of a run's part of one"),
        ("release", "settle reservations whose process is gone; only you can know what they cost"),
        ("export", "print every row in the file's format"),
    ):
        verb_parser = verbs.add_parser(verb, help=text, description=text.capitalize() + ".")
        metavar = "LEDGER" if verb == "release" else "LEDGER_OR_RUN"
        verb_parser.add_argument("ledger", metavar=metavar, help="a ledger's file or address")
        verb_parser.add_argument(
            "--password-env", metavar="NAME", help="variable with the database's password"
        )
        if verb == "show":
            verb_parser.add_argument(
                "--open", action="store_true", help="list the open reservations"
            )
            verb_parser.add_argument("--json", action="store_true", help="print everything as JSON")
        if verb == "release":
            verb_parser.add_argument(
                "reservations",
                nargs="+",
                metavar="RESERVATION",
                help=f"its id, or the first {_SHORTEST_PREFIX} characters or more of it",
            )
            verb_parser.add_argument(
                "--charged",
                type=float,
                default=0.0,
                metavar="USD",
                help="what each of them was billed after all (default: 0)",
            )
            verb_parser.add_argument("--reason", metavar="TEXT", help="kept with the row")
            verb_parser.add_argument("--yes", action="store_true", help="do not ask")
    return parser


class _Password(FrozenSettings):
    password_env: EnvironmentVariable | None


def _location(ledger: str, password_env: str | None) -> LedgerLocation:
    """Where the ledger is that a person named."""
    # A run's own rows are what its directory proves. The ledger that it shared is named by whoever
    # made the directory, so a person has to ask for it.
    if "://" in ledger:
        try:
            check_ledger_url(ledger)
            password = _Password.of({"password_env": password_env}).password_env
            if password is not None:
                check_database_address(ledger, field="LEDGER", login_field="--password-env")
        except ValueError as error:
            raise InputError(str(error)) from error
        location: LedgerLocation = ledger_database(ledger, password)
    else:
        path = Path(ledger)
        location = LedgerFile(path / LEDGER if path.is_dir() else path, on_network=True)
    if not location.exists:
        raise InputError(
            f"{location}: no such ledger; give a run's directory, a file or an address"
        )
    return location


def _show(arguments: argparse.Namespace, location: LedgerLocation) -> int:
    with location.open(0.0, read_only=True) as ledger:
        statement = ledger.statement()
    if arguments.json:
        print_json(
            {
                "ledger": str(location),
                "cap_usd": statement.cap_usd,
                "charged_usd": statement.charged_usd,
                "open_usd": statement.open_usd,
                "reservations": statement.reservations,
                "open": [_as_json(reservation) for reservation in statement.open],
            }
        )
        return 0
    console = make_console()
    console.print(Text(f"ledger {location}"))
    if statement.cap_usd is None:
        console.print("nothing was reserved yet")
    else:
        cap_usd, charged_usd = statement.cap_usd, statement.charged_usd
        left_usd = max(0.0, cap_usd - charged_usd)
        console.print(f"cap ${cap_usd:g}, charged ${charged_usd:g}, left ${left_usd:g}")
        console.print(
            f"reservations: {statement.reservations}, "
            f"open: {len(statement.open)} (${statement.open_usd:g})"
        )
    directory = Path(arguments.ledger)
    if (directory / MANIFEST).is_file():
        of_run = RunDirectory(directory).read_manifest().ledger
        if of_run.shared:
            console.print(f"this is the run's part of {redacted(of_run.path)}")
    if arguments.open and statement.open:
        console.print(_table(statement.open))
    return 0


def _release(arguments: argparse.Namespace, location: LedgerLocation) -> int:
    if isinstance(location, LedgerFile) and (location.path.parent / MANIFEST).is_file():
        raise InputError(
            f"{location}: is a run's evidence, which stays as it is; name the ledger that is shared"
        )
    with location.open(0.0, read_only=True) as ledger:
        chosen = _choose(ledger.statement().open, arguments.reservations)
    for reservation in chosen:
        name, owner = reservation.reservation_id, reservation.owner
        if not 0 <= arguments.charged <= reservation.usd:
            raise InputError(
                f"--charged: expected 0 to the {reservation.usd:g} US dollars that {name} "
                f"reserved, found {arguments.charged:g}"
            )
        if owner and owner.alive:
            raise InputError(
                f"{name}: process {owner.pid} on {owner.host} is alive and may have sent the "
                "request; end it first"
            )
    console = make_console()
    console.print(_table(chosen))
    usd = sum(reservation.usd - arguments.charged for reservation in chosen)
    question = f"Charge ${arguments.charged:g} for each and give ${usd:g} back to {location}?"
    if not arguments.yes:
        if not sys.stdin.isatty():
            raise InputError("nobody is here to ask; look at the list and give --yes")
        try:
            agreed = Confirm.ask(question, console=console, default=False)
        except EOFError:
            agreed = False
        if not agreed:
            return 1
    who = f"{getpass.getuser()}@{socket.gethostname()}"
    with location.open(0.0) as ledger:
        for reservation in chosen:
            meta = {"task_id": reservation.task_id, "basis": RELEASED, "released_by": who}
            reason = {"reason": arguments.reason} if arguments.reason else {}
            ledger.settle(reservation.reservation_id, arguments.charged, meta | reason)
    console.print(f"released: {len(chosen)}, ${usd:g} given back")
    return 0


def _choose(reservations: Sequence[OpenReservation], names: Sequence[str]) -> list[OpenReservation]:
    """The open reservations that were named, each once."""
    chosen: dict[str, OpenReservation] = {}
    for name in names:
        if len(name) < _SHORTEST_PREFIX:
            raise InputError(f"{name}: give at least {_SHORTEST_PREFIX} characters of the id")
        matches = [entry for entry in reservations if entry.reservation_id.startswith(name)]
        if len(matches) != 1:
            count = f"{len(matches)} open reservations" if matches else "no open reservation"
            raise InputError(f"{name}: {count} of this name; see jevexp ledger show --open")
        chosen[matches[0].reservation_id] = matches[0]
    return list(chosen.values())


def _table(reservations: Iterable[OpenReservation]) -> Table:
    """Open reservations with who made them, as far as that is known."""
    headings = ("reservation", ">USD", ">age", "task", "provider", "process", "run")
    table = make_table(*headings)
    # An id is pasted into `jevexp ledger release`.
    table.columns[0].no_wrap = True
    now = time.time()
    for reservation in reservations:
        owner = reservation.owner
        alive = owner.alive if owner else None
        process = f"{owner.pid} on {owner.host}: {_ALIVE[alive]}" if owner else "not known"
        reserved_at = reservation.ts or 0.0
        table.add_row(
            reservation.reservation_id,
            f"{reservation.usd:g}",
            # The maker's clock may be ahead of ours.
            str(timedelta(seconds=int(now - reserved_at))) if 0 < reserved_at < now else "",
            Text(reservation.task_id or ""),
            Text(reservation.adapter or ""),
            Text(process, style=_STYLE[alive]),
            Text((owner.run if owner else None) or ""),
        )
    return table


def _as_json(reservation: OpenReservation) -> dict[str, Any]:
    """Everything that is known of a reservation; `age_s` is in seconds."""
    fields = asdict(reservation)
    del fields["owner"]
    fields["age_s"] = None if reservation.ts is None else time.time() - reservation.ts
    names = ("run", "host", "pid", "alive")
    return fields | {name: getattr(reservation.owner, name, None) for name in names}
