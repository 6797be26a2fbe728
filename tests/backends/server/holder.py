"""A process that holds a started server: `python -m tests.backends.server.holder DIRECTORY`.

Says when the server answers, then waits to be ended.
"""

import sys
import time
from pathlib import Path

from tests.backends.server.started import server


def main() -> None:
    started = server("family")
    started.start(Path(sys.argv[1]))
    try:
        print("started", flush=True)
        # In short steps: a signal that comes just before a sleep does not end it.
        for _ in range(600):
            time.sleep(0.1)
    finally:
        started.stop()


if __name__ == "__main__":
    main()
