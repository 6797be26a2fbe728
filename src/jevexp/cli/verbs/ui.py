"""`jevexp ui`: open MLflow on the finished runs."""

import signal
import socket
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from jevexp.cli.arguments import add_store, store_settings
from jevexp.cli.console import check_outputs, make_console, make_parser
from jevexp.errors import InputError
from jevexp.tracking import TrackingError
from jevexp.tracking.mlflow import MlflowTracker
from jevexp.tracking.mlflow.environment import HOST, user_interface
from jevexp.tracking.mlflow.links import DEFAULT_PORT
from jevexp.untrusted.files import permissions_of


def main(argv: Sequence[str]) -> int:
    """Run the verb until Ctrl-C; 1 when MLflow could not be started.

    Raises InputError: there is no folder of runs, the port is taken, or the address is unusable.
    """
    parser = make_parser("ui", "Open MLflow on the finished runs; Ctrl-C ends it.")
    add_store(parser)
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"default: {DEFAULT_PORT}")
    arguments = parser.parse_args(argv)
    if arguments.uri is None:
        check_outputs(arguments.outputs)
    tracker = MlflowTracker(store_settings(arguments), arguments.outputs)
    tracker.check_own()
    console = make_console()
    for signum in (signal.SIGINT, signal.SIGTERM):
        # Whoever ends us ends the child too; a shell's background job ignores SIGINT otherwise.
        signal.signal(signum, signal.default_int_handler)
    try:
        if tracker.location.served:
            console.print(*_links(tracker, tracker.location.uri), sep="\n")
        else:
            _serve(console, tracker, arguments.port, arguments.outputs)
    except TrackingError as error:
        console.print(Text(f"error: {error}", style="red"))
        return 1
    except KeyboardInterrupt:
        # Not through the console, which may have been interrupted in the middle of a line.
        print("ended", flush=True)
    return 0


def _serve(console: Console, tracker: MlflowTracker, port: int, outputs: Path) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"--port {port}: {reason}; give another --port") from error
    database = tracker.location.database
    if database is not None and not database.exists():
        # Made here, under a lock: a run may be about to make it too.
        tracker.runs()
    console.print("starting MLflow …")
    # MLflow's own process makes files too.
    with permissions_of(outputs), user_interface(tracker.location, port) as child:
        # The child needs seconds; looking up the runs meanwhile costs none.
        links = _links(tracker, child.address)
        child.wait_until_up()
        console.print(*links, sep="\n")
        console.print("Ctrl-C ends it")
        child.wait_until_over()


def _links(tracker: MlflowTracker, base: str) -> list[Text]:
    runs = tracker.runs()
    comparisons = tracker.store.find_comparison(runs[0].run_id) if runs else []
    return [*map(Text, tracker.addresses(runs, comparisons, base) or [f"no runs yet: {base}"])]
