"""A process that holds a managed server: `python -m tests.live.holder GGUF DIRECTORY`.

Prints the server's process id, then waits to be ended.
"""

import sys
import time
from pathlib import Path

from jevexp.backends.llama_cpp import LlamaCpp
from tests.support.llama import backend_settings, model_identity


def main() -> None:
    backend = LlamaCpp(backend_settings(gguf=sys.argv[1]), model_identity())
    with_server = backend.open(Path(sys.argv[2]))
    try:
        print(with_server.server_pid, flush=True)
        # In short steps: a signal that comes just before a sleep does not end it.
        for _ in range(600):
            time.sleep(0.1)
    finally:
        backend.close()


if __name__ == "__main__":
    main()
