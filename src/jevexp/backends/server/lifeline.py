"""What ties a started process to the one that started it.

The parent holds the child's standard input open: its end says that the parent is gone, on every
system and however that came about. Linux can also send a signal, which needs no attention from the
child.
"""

import ctypes
import os
import sys
import threading

PR_SET_PDEATHSIG = 1


def parent_to_name() -> int | None:
    """Our process id for the child's `die_with`; None where that would end the child too early.

    Linux ties a child to the thread that starts it, which may end before the process does.
    """
    lasting = threading.current_thread() is threading.main_thread()
    return os.getpid() if lasting else None


def die_with(parent: int | None, signal_number: int) -> None:
    """Have Linux send this process a signal when `parent` ends; end at once if it has already."""
    if parent is None or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def wait_for_end_of_input() -> None:
    """Return once standard input has ended."""
    while os.read(0, 4096):
        pass
