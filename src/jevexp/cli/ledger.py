"""`jevexp ledger`: look at a ledger, release what a dead process reserved, export its rows."""

import argparse
import getpass
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.prompt import Confirm

from jevexp.cli.console import make_console, print_json
from jevexp.cli.ledger_view import as_json, overview, table
from jevexp.core.json import dumps
from jevexp.errors import InputError
from jevexp.ledger import FilePlace, LedgerError, Place, database_place
from jevexp.ledger.protocol import ReadableLedger
from jevexp.ledger.statement import Open, statement
from jevexp.settings import check_ledger_url
from jevexp.settings.base import EnvironmentVariable, FrozenSettings
from jevexp.store.directory import LEDGER, MANIFEST, RunDirectory
from jevexp.untrusted.addresses import check_database_address
from jevexp.untrusted.text import printable_json

# What a settlement says that a person made in place of a process that is gone.
RELEASED = "released"
_SHORTEST_PREFIX = 6


def main(argv: Sequence[str]) -> int:
    """Run the verb; 0, or 1 when a person says no.

    Raises:
        InputError: there is no such ledger or reservation, or its process is alive.
    """
    arguments = _parser().parse_args(argv)
    place = _place(arguments.ledger, arguments.password_env)
    try:
        if arguments.verb == "show":
            return _show(arguments, place)
        if arguments.verb == "release":
            return _release(arguments, place)
        return _export(place)
    except LedgerError as error:
        raise InputError(str(error)) from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jevexp ledger",
        description="Look at a ledger, release what a dead process reserved, export its rows.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="show|release|export")
    for verb, text in (
        ("show", "cap, charges and open reservations of a ledger, or of a run's part of one"),
        ("release", "settle reservations whose process is gone; only you can know what they cost"),
        ("export", "print every row in the file's format"),
    ):
        parts = verbs.add_parser(verb, help=text, description=text.capitalize() + ".")
        what = "LEDGER" if verb == "release" else "LEDGER_OR_RUN"
        parts.add_argument("ledger", metavar=what, help="a ledger's file or address")
        parts.add_argument(
            "--password-env", metavar="NAME", help="variable with the database's password"
        )
        if verb == "show":
            parts.add_argument("--open", action="store_true", help="list the open reservations")
            parts.add_argument("--json", action="store_true", help="print everything as JSON")
        if verb == "release":
            parts.add_argument(
                "reservations",
                nargs="+",
                metavar="RESERVATION",
                help=f"its id, or the first {_SHORTEST_PREFIX} characters or more of it",
            )
            parts.add_argument(
                "--charged",
                type=float,
                default=0.0,
                metavar="USD",
                help="what each of them was billed after all (default: 0)",
            )
            parts.add_argument("--reason", metavar="TEXT", help="kept with the row")
            parts.add_argument("--yes", action="store_true", help="do not ask")
    return parser


class _Password(FrozenSettings):
    password_env: EnvironmentVariable | None


def _place(ledger: str, password_env: str | None) -> Place:
    """Where the ledger is that a person named.

    A run's own rows are what its directory proves. The ledger that it shared is named by whoever
    made the directory, so a person has to ask for it.
    """
    if "://" in ledger:
        try:
            check_ledger_url(ledger)
            password = _Password.of({"password_env": password_env}).password_env
            if password is not None:
                check_database_address(ledger, field="LEDGER", login_field="--password-env")
        except ValueError as error:
            raise InputError(str(error)) from error
        place: Place = database_place(ledger, password)
    else:
        path = Path(ledger)
        place = FilePlace(path / LEDGER if path.is_dir() else path, on_network=True)
    if not place.exists:
        raise InputError(f"{place}: no such ledger; give a run's directory, a file or an address")
    return place


def _opened(place: Place) -> ReadableLedger:
    return place.open(0.0, read_only=True)


def _show(arguments: argparse.Namespace, place: Place) -> int:
    with _opened(place) as ledger:
        found = statement(ledger)
    if arguments.json:
        print_json({"ledger": str(place)} | as_json(found))
        return 0
    console = make_console()
    console.print(*overview(str(place), found), sep="\n")
    directory = Path(arguments.ledger)
    if (directory / MANIFEST).is_file():
        said = RunDirectory(directory).read_manifest().ledger
        if said.shared:
            console.print(f"this is the run's part of {said.path}")
    if arguments.open and found.open:
        console.print(table(found.open))
    return 0


def _release(arguments: argparse.Namespace, place: Place) -> int:
    if isinstance(place, FilePlace) and (place.path.parent / MANIFEST).is_file():
        raise InputError(
            f"{place}: is a run's evidence, which stays as it is; name the ledger that is shared"
        )
    with _opened(place) as ledger:
        chosen = _choose(statement(ledger).open, arguments.reservations)
    for one in chosen:
        if not 0 <= arguments.charged <= one.usd:
            raise InputError(
                f"--charged: expected 0 to the {one.usd:g} US dollars that {one.reservation_id} "
                f"reserved, found {arguments.charged:g}"
            )
        if one.session and one.session.alive:
            raise InputError(
                f"{one.reservation_id}: process {one.session.pid} on {one.session.host} is alive "
                "and may have sent the request; end it first"
            )
    console = make_console()
    console.print(table(chosen))
    usd = sum(one.usd - arguments.charged for one in chosen)
    question = f"Charge ${arguments.charged:g} for each and give ${usd:g} back to {place}?"
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
    with place.open(0.0) as ledger:
        for one in chosen:
            meta = {"task_id": one.task_id, "basis": RELEASED, "released_by": who}
            reason = {"reason": arguments.reason} if arguments.reason else {}
            ledger.settle(one.reservation_id, arguments.charged, meta | reason)
    console.print(f"released: {len(chosen)}, ${usd:g} given back")
    return 0


def _choose(reservations: Sequence[Open], names: Sequence[str]) -> list[Open]:
    """The open reservations that were named, each once.

    Raises:
        InputError: a name fits none of them, or several.
    """
    chosen: dict[str, Open] = {}
    for name in names:
        if len(name) < _SHORTEST_PREFIX:
            raise InputError(f"{name}: give at least {_SHORTEST_PREFIX} characters of the id")
        fitting = [one for one in reservations if one.reservation_id.startswith(name)]
        if len(fitting) != 1:
            found = f"{len(fitting)} open reservations" if fitting else "no open reservation"
            raise InputError(f"{name}: {found} of this name; see jevexp ledger show --open")
        chosen[fitting[0].reservation_id] = fitting[0]
    return list(chosen.values())


def _export(place: Place) -> int:
    with _opened(place) as ledger:
        for row in ledger.rows():
            print(printable_json(dumps(row)))
    return 0
