"""Which process made a reservation, and whether it still lives.

The rows of a ledger say nothing about processes, as the pinned harness's do not. So a reservation's
id begins with the id of the session that made it, and who that was is kept beside the rows.
"""

import os
import socket
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

_ID_LENGTH = 12
# The third field after the command's name, which may hold anything, is the state; the start in
# clock ticks since boot is the 22nd of all (proc(5)).
_STATE, _START = 0, 19


@dataclass(frozen=True, slots=True)
class Session:
    """One process's use of a ledger.

    Attributes:
        id: what the reservations' ids begin with.
        run: the run's directory, or None outside a run.
        host: the machine's name.
        pid: the process's number on that machine.
        machine: names one start of one machine, and in it one set of process numbers.
        started: when the process started, in the machine's own measure; a number is used again
            when its process is gone.
    """

    id: str
    run: str | None
    host: str
    pid: int
    machine: str
    started: str | None

    @classmethod
    def here(cls, run: Path | None) -> Self:
        """A new session of this process."""
        pid = os.getpid()
        found = _process(pid)
        return cls(
            id=uuid.uuid4().hex[:_ID_LENGTH],
            run=str(run.absolute()) if run else None,
            host=socket.gethostname(),
            pid=pid,
            machine=_machine(),
            started=found[1] if found else None,
        )

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Read a session back; unknown fields are ignored.

        Raises:
            ValueError: it is none.
        """
        known: dict[str, Any] = {name: fields.get(name) for name in cls.__slots__}
        texts = ("id", "host", "machine")
        optional = ("run", "started")
        if (
            type(known["pid"]) is not int
            or not all(isinstance(known[name], str) for name in texts)
            or not all(isinstance(known[name], str | None) for name in optional)
        ):
            raise ValueError("not a session")
        return cls(**known)

    def fields(self) -> dict[str, Any]:
        """The session as plain JSON."""
        return asdict(self)

    def reservation_id(self) -> str:
        """A new id, 32 hexadecimal digits like the pinned harness's."""
        return self.id + uuid.uuid4().hex[_ID_LENGTH:]

    @property
    def alive(self) -> bool | None:
        """Whether the process still lives; None where that cannot be seen from here."""
        if self.machine != _machine():
            return None
        found = _process(self.pid)
        if found is None:
            return False
        state, started = found
        return state not in "ZX" and (self.started is None or started == self.started)


def session_of(reservation_id: str) -> str:
    """The id of the session that made a reservation."""
    return reservation_id[:_ID_LENGTH]


def _machine() -> str:
    """A name for this start of this machine and this set of process numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        # No Linux: its name has to do, and a number is taken for its first owner's.
        return socket.gethostname()


def _process(pid: int) -> tuple[str, str | None] | None:
    """State and start of a process; None where there is none of that number."""
    if Path("/proc/self/stat").exists():
        try:
            text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            return None
        fields = text.rpartition(")")[2].split()
        return fields[_STATE], fields[_START]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "R", None
