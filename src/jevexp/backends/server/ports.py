"""Free ports that no two of our processes choose at once.

Between choosing a port and a server's listening on it seconds pass, in which another process could
choose the same one, and would then ask the other's server.
"""

import fcntl
import socket
from contextlib import suppress
from functools import cache
from io import FileIO

from jevexp.store.cache import cache_folder
from jevexp.untrusted.writing import Folder

HOST = "127.0.0.1"


def claim_port() -> int:
    """A port that is free now, and that no other process of this user claims meanwhile.

    It stays claimed until it is released, or this process ends. Where the cache folder takes no
    locks, the port is only free now.
    """
    while True:
        port = _free_port()
        try:
            fcntl.lockf(_claims(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except BlockingIOError:
            continue
        except OSError:
            return port
        else:
            return port


def release_port(port: int) -> None:
    """Let others choose a port again."""
    with suppress(OSError):
        fcntl.lockf(_claims(), fcntl.LOCK_UN, 1, port)


@cache
def _claims() -> FileIO:
    """A file with one byte a port to lock; closing it anywhere would give up all of them."""
    path = cache_folder() / "ports.lock"
    with Folder.named(path.parent) as folder:
        return folder.append(path.name)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
