"""Eight processes on one ledger, killed and resumed until all of them are complete."""

import random
import shutil
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path

from jevexp.store.checksums import CHECKSUMS
from jevexp.store.directory import MANIFEST
from tests.crash.child import NAMES, Child, Kill, Log, start
from tests.crash.oracle import RESERVED_USD, rows_of, union, verified
from tests.crash.trial import DEMO, MOST_SESSIONS, TASKS, Tally, ended

PROCESSES = 8
LEDGER = Path("shared.jsonl")


@dataclass
class Member:
    """One of the processes: its sessions so far."""

    number: int
    sessions: list[Path] = field(default_factory=list)

    @property
    def log(self) -> Log:
        return Log(Path(f"log-{self.number}"))

    @property
    def complete(self) -> bool:
        return bool(self.sessions) and ended(self.sessions[-1])

    def start(self, kill: Kill | None) -> Child:
        """Begin, or go on with the last session that became a run."""
        runs = [path for path in self.sessions if (path / MANIFEST).exists()]
        self.sessions.append(Path(f"run-{self.number}-{len(self.sessions)}"))
        command = [f"resume={runs[-1]}"] if runs else [*DEMO]
        common = [f"caps.ledger={LEDGER}", "tracking=none"]
        where = f"hydra.run.dir={self.sessions[-1]}"
        return start([*command, *common, where], self.log.path, kill)


def fleet(folder: Path, random_: random.Random, choices: list[Kill], tally: Tally) -> None:
    """Run the eight, kill most of them each time, resume them, and check everything.

    Args:
        folder: a new folder for them.
        random_: decides who is killed.
        choices: ways to be killed; taken from the end until there are none.
        tally: gets what came of it.
    """
    folder.mkdir()
    with chdir(folder):
        members = [Member(number) for number in range(PROCESSES)]
        for _ in range(MOST_SESSIONS):
            waiting = [member for member in members if not member.complete]
            started = []
            for member in waiting:
                kill = choices.pop() if choices and random_.random() < 0.8 else None
                started.append((member, kill, member.start(kill)))
            for member, kill, child in started:
                status = child.wait(kill)
                tally.kills += status < 0
                if status > 0 or (kill is None and status != 0):
                    printed = Path(f"{member.log.path}.out").read_text()
                    tally.faults.append(f"fleet: came to {status}: {printed}")
                run = member.sessions[-1]
                if (run / MANIFEST).exists():
                    tally.faults += verified(run, sealed=(run / CHECKSUMS).exists())
        for member in members:
            tally.faults += _checked(member, tally)
        tally.faults += _shared(members, tally)
    shutil.rmtree(folder)


def _checked(member: Member, tally: Tally) -> list[str]:
    if not member.complete:
        return [f"fleet: member {member.number} never became complete"]
    log = member.log.read()
    tally.answers_held += len(log.held)
    order = list(NAMES.values())[:TASKS]
    return union(order, member.sessions[-1], log)


def _shared(members: list[Member], tally: Tally) -> list[str]:
    """Faults of the ledger that all of them charged."""
    found = rows_of(LEDGER)
    reserved = {
        row["reservation_id"]: row["reserved_usd"] for row in found if row["event"] == "reserve"
    }
    settled = {
        row["reservation_id"]: row["charged_usd"] for row in found if row["event"] == "settle"
    }
    total = sum((reserved | settled).values())
    asked = sum(member.log.read().asked.total() for member in members)
    faults = []
    if abs(total - len(reserved) * RESERVED_USD) > 1e-9:
        faults.append(f"fleet: charged {total}, reserved {len(reserved)} times {RESERVED_USD}")
    if not 0 <= len(reserved) - asked <= tally.kills:
        faults.append(f"fleet: reserved {len(reserved)} times, asked {asked} times")
    for member in members:
        for run in member.sessions:
            own = {
                row["reservation_id"]
                for row in rows_of(run / "ledger.jsonl")
                if row["event"] == "reserve"
            }
            if not own <= reserved.keys():
                faults.append(f"fleet: {run} has reservations that the shared ledger lacks")
    return faults
