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
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict

from jevexp.core.json import loads

_ID_LENGTH = 12
_SAME_START_S = 2


class LedgerOwner(BaseModel):
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

    model_config = ConfigDict(frozen=True, strict=True)

    id: str
    run: str | None = None
    host: str
    pid: int
    machine: str
    started: str | None = None

    @classmethod
    def here(cls, run: Path | None, owner_id: str) -> Self:
        """Describe this process's use of a ledger."""
        pid = os.getpid()
        return cls(
            id=owner_id,
            run=str(run.absolute()) if run else None,
            host=socket.gethostname(),
            pid=pid,
            machine=_machine(),
            started=_process(pid)[1],
        )

    @property
    def alive(self) -> bool | None:
        """Whether the process still lives; None where that cannot be seen from here."""
        if self.machine != _machine():
            return None
        alive, started = _process(self.pid)
        if not alive or started is None or self.started is None:
            return alive
        # The clock may have been set between two reads of one start, and no system gives a number
        # away again within so short a time.
        try:
            apart = abs(int(started) - int(self.started))
        except ValueError:
            return False
        return apart <= _SAME_START_S * os.sysconf("SC_CLK_TCK")


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

    A killed process leaves part of a line, and others may write anything; what is not an owner is
    left out.
    """
    owners = {}
    for line in lines:
        with suppress(ValueError):
            owner = LedgerOwner.model_validate(loads(line))
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
