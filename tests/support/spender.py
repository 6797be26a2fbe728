"""A process that spends from a ledger, for tests that kill it or let several compete.

python -m tests.support.spender spend|hold|lock LEDGER CAP AMOUNT
"""

import fcntl
import sys
import time
from pathlib import Path

from jevexp.ledger.file import FileLedger
from jevexp.ledger.state import CapReached


def spend(ledger: FileLedger, amount: float) -> None:
    """Reserve and settle until the cap is reached; every second charge is half of its amount."""
    count = 0
    while True:
        try:
            reservation = ledger.reserve(amount, {"task_id": f"t-{count}", "adapter": "spender"})
        except CapReached:
            break
        charged = amount / 2 if count % 2 else amount
        ledger.settle(reservation, charged, {"task_id": f"t-{count}", "basis": "unknown"})
        count += 1
    print(count)


def hold(ledger: FileLedger, amount: float) -> None:
    """Settle one reservation, leave two open, say so, and wait to be killed."""
    for number in range(3):
        reservation = ledger.reserve(amount, {"task_id": f"t-{number}", "adapter": "spender"})
        if number == 0:
            ledger.settle(reservation, amount, {"task_id": "t-0", "basis": "unknown"})
    print("holding", flush=True)
    time.sleep(60)


def lock(path: Path) -> None:
    """Take the ledger's lock, say so, and wait to be killed."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        print("locked", flush=True)
        time.sleep(60)


def main() -> None:
    """Do what the command line says."""
    verb, path, cap, amount = sys.argv[1:]
    if verb == "lock":
        lock(Path(path))
        return
    with FileLedger(Path(path), float(cap)) as ledger:
        {"spend": spend, "hold": hold}[verb](ledger, float(amount))


if __name__ == "__main__":
    main()
