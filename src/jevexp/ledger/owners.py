"""Which process made a reservation, and whether it still lives.

The rows of a ledger say nothing about processes, as the pinned harness's do not. So a reservation's
id begins with the id of the process's use of the ledger, its session, and who that was is kept
beside the rows.
"""

import os
import socket
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from jevexp.core.json import loads

_ID_LENGTH = 12
_SAME_START_S = 2


@dataclass(frozen=True, slots=True)
class LedgerOwner:
    """One process's use of a ledger.

    Attributes:
        id: what the reservations' ids begin with.
        run: the run's directory, or None outside a run.
        host: the machine's name.
        pid: the process's number on that machine.
        machine: names one start of one machine, and in it one set of process numbers.
        started: when the process started, in the machine's clock ticks; a number is used again
            when its process is gone.
    """

    id: str
    run: str | None
    host: str
    pid: int
    machine: str
    started: str | None

    @classmethod
    def here(cls, run: Path | None, owner_id: str | None = None) -> Self:
        """A use of a ledger by this process, under a new id where none is given."""
        pid = os.getpid()
        return cls(
            id=owner_id or new_owner_id(),
            run=str(run.absolute()) if run else None,
            host=socket.gethostname(),
            pid=pid,
            machine=_machine(),
            started=_process(pid)[1],
        )

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Read an owner back; unknown fields are ignored.

        Raises:
            ValueError: a field is missing or of another type.
        """
        known: dict[str, Any] = {name: fields.get(name) for name in cls.__slots__}
        texts = ("id", "host", "machine")
        optional = ("run", "started")
        if (
            type(known["pid"]) is not int
            or not all(isinstance(known[name], str) for name in texts)
            or not all(isinstance(known[name], str | None) for name in optional)
        ):
            raise ValueError("not an owner")
        return cls(**known)

    def fields(self) -> dict[str, Any]:
        """The owner as plain JSON."""
        return asdict(self)

    @property
    def alive(self) -> bool | None:
        """Whether the process still lives; None where that cannot be seen from here."""
        if self.machine != _machine():
            return None
        alive, started = _process(self.pid)
        if not alive or started is None or self.started is None:
            return alive
        return _same_start(started, self.started)


def new_owner_id() -> str:
    """What the ids of reservations will begin with."""
    return uuid.uuid4().hex[:_ID_LENGTH]


def new_reservation_id(owner_id: str) -> str:
    """A new id, 32 hexadecimal digits like the pinned harness's."""
    return owner_id + uuid.uuid4().hex[_ID_LENGTH:]


def owner_id(reservation_id: str) -> str:
    """The id of the owner that made a reservation."""
    return reservation_id[:_ID_LENGTH]


def read_owners(lines: Iterable[str | bytes]) -> dict[str, LedgerOwner]:
    """Owners by their ids, from one JSON object each.

    A killed process leaves part of a line, and a stranger anything: what is no owner is left out.
    """
    owners = {}
    for line in lines:
        with suppress(ValueError, AttributeError, TypeError):
            owner = LedgerOwner.of(loads(line))
            owners[owner.id] = owner
    return owners


def _machine() -> str:
    """A name for this start of this machine and this set of process numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        # Without /proc only the host's name tells machines apart.
        return socket.gethostname()


def _process(pid: int) -> tuple[bool, str | None]:
    """Whether a process lives, and when it started; None where the system does not say."""
    import psutil

    if pid <= 0:
        return False, None
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False, None
    except PermissionError:
        # Somebody else's process.
        pass
    try:
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return False, None
        # Linux keeps the time since it was started itself, which stays when the clock is set.
        origin_s = psutil.boot_time() if psutil.LINUX else 0.0
        ticks = round((process.create_time() - origin_s) * os.sysconf("SC_CLK_TCK"))
    except psutil.ZombieProcess:
        return False, None
    except (psutil.Error, OSError, RuntimeError):
        return True, None
    return True, str(ticks)


def _same_start(ticks: str, other_ticks: str) -> bool:
    """Whether two readings are of one start; the clock may have been set between two reads of it.

    No system gives a number away again within so short a time.
    """
    try:
        apart = abs(int(ticks) - int(other_ticks))
    except ValueError:
        return False
    return apart <= _SAME_START_S * os.sysconf("SC_CLK_TCK")
