"""Reads every file named on the command line; prints what came of each, the time and the peak.

A process of its own, so that the memory is that of reading and of nothing else.
"""

import json
import sys
import time
from pathlib import Path

from jevexp.weights.digest import WeightsError
from jevexp.weights.gguf import read_header
from tests.support.memory import peak_bytes


def main() -> None:
    """One JSON list: processor seconds and message by file, and the process's peak in bytes."""
    read_header(Path(sys.argv[1]))  # a good one, so that imports are not counted
    refused = {}
    for name in sys.argv[2:]:
        started = time.process_time()
        try:
            message = f"read: {read_header(Path(name))}"
        except WeightsError as error:
            message = str(error)
        refused[name] = (time.process_time() - started, message)
    print(json.dumps([refused, peak_bytes()]))


if __name__ == "__main__":
    main()
