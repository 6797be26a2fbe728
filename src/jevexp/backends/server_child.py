"""The process of a server that is started here: `python -m jevexp.backends.server_child`.

Standard input carries one line of JSON and is then held open: its end means that the parent is
gone. With a `command`, that runs in this process's group, so that all the processes it starts end
with it: when it ends itself, when we are told to end, and when the parent is gone. Otherwise
llama.cpp serves a model in this process, and standard output carries its address back. Everything
else that is printed goes into the log, which is standard error.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# Shorter than what the parent grants us.
_GRACE_S = 2.0
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Run what standard input asks for until it, or the reason to run it, ends."""
    # Native code prints to descriptor 1 too.
    address_descriptor = os.dup(1)
    os.dup2(2, 1)
    request = json.loads(sys.stdin.readline())
    if "command" in request:
        _run_command(request["command"], request["parent"])
    else:
        _serve_model(request, address_descriptor)


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


def at_end_of_input(action: Callable[[], None]) -> None:
    """Call `action` in a thread of its own once standard input has ended."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        action()

    threading.Thread(target=wait, daemon=True).start()


def _run_command(command: Sequence[str], parent: int | None) -> None:
    guard = os.getpid()
    told, over = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    die_with(parent, signal.SIGTERM)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            # Should somebody kill this process, at least the command itself ends too.
            preexec_fn=lambda: die_with(guard, signal.SIGKILL),  # noqa: PLW1509 - no threads yet
        )
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")

    def wait_for_command() -> None:
        process.wait()
        over.set()
        told.set()

    at_end_of_input(told.set)
    threading.Thread(target=wait_for_command, daemon=True).start()
    told.wait()
    # From here on also what the group is sent reaches only the others.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    over.wait(_GRACE_S)
    os.killpg(0, signal.SIGKILL)


def _serve_model(request: Mapping[str, Any], address_descriptor: int) -> None:
    # The end of standard input is only noticed while Python runs, and loading a model is one long
    # native call.
    die_with(request["parent"], signal.SIGKILL)
    at_end_of_input(lambda: os._exit(0))
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = request["gguf"]
    params.model_alias = {request["alias"]}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    # The context is divided among the slots; what was asked for is meant for one decision.
    params.n_parallel = request["slots"]
    params.n_ctx = request["context"] * request["slots"]
    if request["at_once"]:
        params.n_batch = params.n_ubatch = request["context"]
    # Only a server that could save slots empties them when it is told to. Here it can save none.
    params.slot_save_path = f"{os.devnull}/"
    params.cache_type_k = xllamacpp.ggml_type[f"GGML_TYPE_{request['cache_type_k'].upper()}"]
    params.cache_type_v = xllamacpp.ggml_type[f"GGML_TYPE_{request['cache_type_v'].upper()}"]
    params.n_gpu_layers = request["gpu_layers"]
    params.fit_params = request["gpu_layers"] < 0
    if request["threads"] is not None:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = request["threads"]
    # Nothing that was computed for one decision may be used for, or moved by, another.
    params.cache_prompt = params.cache_idle_slots = params.ctx_shift = False
    params.cache_ram_mib = params.n_cache_reuse = 0
    # Checkpoints of sliding-window models split the prompt, and quantized arithmetic rounds another
    # way where it is split: the same prompt would give other numbers on another route.
    params.n_ctx_checkpoints = 0
    params.ui = False
    # Nobody else on this machine, and no page in a browser, is answered; `/health` is open to all.
    params.api_keys = [request["api_key"]]
    params.endpoint_slots = False
    for name in ("cors_origins", "cors_methods", "cors_headers", "cors_credentials"):
        # Older versions have fewer of these, and the key in any case.
        if hasattr(params, name):
            setattr(params, name, False if name == "cors_credentials" else "")
    server = xllamacpp.Server(params)
    os.write(address_descriptor, f"{server.listening_address}\n".encode())
    os.close(address_descriptor)
    threading.Event().wait()


if __name__ == "__main__":
    main()
