"""The started server's own process: `python -m jevexp.backends.server.child`.

Standard input carries one JSON line with the parameters, the key that the server wants among them,
and is then held open: its end means that
the parent is gone. Standard output carries one line back, the address. Everything that llama.cpp
prints goes to standard error.
"""

import json
import os
import signal
import sys
import threading
from typing import Any

from jevexp.backends.server.process import die_with, wait_for_end_of_input


def main() -> None:
    """Serve until standard input ends."""
    announce = _keep_stdout_for_the_address()
    asked = json.loads(sys.stdin.readline())
    # The end of standard input is only noticed while Python runs, and loading a model is one long
    # native call.
    die_with(asked["parent"], signal.SIGKILL)
    threading.Thread(target=_exit_at_end_of_input, daemon=True).start()
    server = _start(asked)
    os.write(announce, f"{server.listening_address}\n".encode())
    os.close(announce)
    threading.Event().wait()


def _keep_stdout_for_the_address() -> int:
    """Point descriptor 1 at the log, since native code prints there too; return the old one."""
    announce = os.dup(1)
    os.dup2(2, 1)
    return announce


def _exit_at_end_of_input() -> None:
    wait_for_end_of_input()
    os._exit(0)


def _start(asked: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = asked["gguf"]
    params.model_alias = {asked["alias"]}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    # The context is divided among the slots; what was asked for is meant for one decision.
    params.n_parallel = asked["slots"]
    params.n_ctx = asked["context"] * asked["slots"]
    params.cache_type_k = xllamacpp.ggml_type[f"GGML_TYPE_{asked['cache_type_k'].upper()}"]
    params.cache_type_v = xllamacpp.ggml_type[f"GGML_TYPE_{asked['cache_type_v'].upper()}"]
    params.n_gpu_layers = asked["gpu_layers"]
    params.fit_params = asked["gpu_layers"] < 0
    if asked["threads"] is not None:
        params.cpuparams.n_threads = asked["threads"]
        params.cpuparams_batch.n_threads = asked["threads"]
    # Nothing that was computed for one decision may be used for, or moved by, another.
    params.cache_prompt = False
    params.cache_idle_slots = False
    params.cache_ram_mib = 0
    params.n_cache_reuse = 0
    params.ctx_shift = False
    # Checkpoints of sliding-window models split the prompt, and quantized arithmetic rounds another
    # way where it is split: the same prompt would give other numbers on another route.
    params.n_ctx_checkpoints = 0
    params.ui = False
    # Nobody else on this machine, and no page in a browser, is answered; `/health` is open to all.
    params.api_keys = [asked["api_key"]]
    params.endpoint_slots = False
    for name, nobody in (
        ("cors_origins", ""),
        ("cors_methods", ""),
        ("cors_headers", ""),
        ("cors_credentials", False),
    ):
        # Older versions have fewer of these, and the key in any case.
        if hasattr(params, name):
            setattr(params, name, nobody)
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
