"""`jevexp ui`: open MLflow on the finished runs, and say where to look."""

import argparse
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from jevexp.errors import InputError
from jevexp.settings import Tracking
from jevexp.tracking import Tracker, TrackingError, make_tracker
from jevexp.tracking.links import DEFAULT_PORT
from jevexp.tracking.place import Place
from jevexp.tracking.server import HOST, address, user_interface


def main(argv: Sequence[str]) -> int:
    """Run the verb until Ctrl-C; 1 when MLflow could not be started.

    Raises:
        InputError: there is no folder of runs, the port is taken, or the address is unusable.
    """
    arguments = _parser().parse_args(argv)
    if arguments.uri is None and not arguments.outputs.is_dir():
        raise InputError(f"{arguments.outputs}: no such folder; run something, or give --outputs")
    tracker = make_tracker(_settings(arguments), arguments.outputs)
    console = Console(soft_wrap=True)
    for signum in (signal.SIGINT, signal.SIGTERM):
        # Whoever ends us ends the child too; a shell's background job ignores SIGINT otherwise.
        signal.signal(signum, signal.default_int_handler)
    try:
        place = Place.of(arguments.uri, arguments.outputs)
        if place.served:
            _print_links(console, tracker, place.uri)
        else:
            _serve(console, tracker, place, arguments.port)
    except TrackingError as error:
        console.print(Text(f"error: {error}", style="red"))
        return 1
    except KeyboardInterrupt:
        console.print("ended")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jevexp ui",
        description="Open MLflow on the finished runs; Ctrl-C ends it.",
    )
    parser.add_argument(
        "--outputs",
        type=Path,
        default=Path("outputs"),
        metavar="DIR",
        help="the folder of runs (default: outputs)",
    )
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"default: {DEFAULT_PORT}")
    parser.add_argument("--uri", help="another store; for a server its links are printed")
    parser.add_argument("--experiment", default="jevexp", metavar="NAME", help="default: jevexp")
    return parser


def _settings(arguments: argparse.Namespace) -> Tracking:
    return Tracking.of(
        {
            "kind": "mlflow",
            "uri": arguments.uri,
            "experiment": arguments.experiment,
            "raw_evidence": False,
            "timeout_s": 10.0,
        }
    )


def _serve(console: Console, tracker: Tracker, place: Place, port: int) -> None:
    _check_free(port)
    # Looked up first: this makes a database that does not exist yet, and nobody else at once.
    tracker.runs()
    console.print("starting MLflow …")
    with user_interface(place, port) as process:
        _print_links(console, tracker, address(port))
        console.print("Ctrl-C ends it")
        status = process.wait()
    raise TrackingError(f"mlflow ui ended by itself, with status {status}")


def _print_links(console: Console, tracker: Tracker, base: str) -> None:
    links = tracker.links(tracker.runs(), base)
    lines = links.lines() if links else [f"no runs yet: {base}"]
    console.print(Text("\n".join(lines)))


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"--port {port}: {reason}; give another --port") from error
