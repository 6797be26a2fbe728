"""What a llama.cpp server says, as the backend describes it."""

from typing import Any

from jevexp.core.identity import ObservedValue, Source

# Serves tests.weights.gguf_bytes.quantized from another machine's disk.
SERVED: dict[str, Any] = {
    "kind": "llama_cpp",
    "managed": False,
    "base_url": "http://127.0.0.1:8080",
    "model": "served",
    "model_alias": "served",
    "model_path": "/models/model.gguf",
    "ftype": "Q2_K - Medium",
    "n_params": 513,
    "size": 172,
    "n_vocab": 262144,
    "n_ctx": 4096,
    "n_ctx_train": 8192,
    "n_embd": 64,
    "total_slots": 1,
    "build_info": "b9999",
    "chat_template_sha256": "c" * 64,
    "modalities": None,
    "prompt_version": "1",
    "template_kwargs": {"enable_thinking": False},
    "readout": {"version": "1", "bias": 12.0, "extra_probs": 4},
}


def said_by(**changes: Any) -> dict[str, Any]:
    """The description, with changes."""
    return SERVED | changes


def says(value: Any, source: Source) -> ObservedValue:
    """One thing that one source says."""
    return ObservedValue(value=value, source=source)
