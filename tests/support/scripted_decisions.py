"""A scripted llama.cpp server with a decision model."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.scripted_llama import MODEL, Answer, ScriptedLlama, scripted_llama
from tests.support.systemone import ENDPOINT, respond

ERASE = "/slots/{}?action=erase"
SLOTS = 4


def refusal(status: int, kind: str, message: str, **fields: int) -> Answer:
    """An error in llama.cpp's form."""
    error = {"code": status, "type": kind, "message": message, **fields}
    return Answer({"error": error}, status=status)


NO_ERASING = refusal(501, "not_supported_error", "This server does not support slots action.")


@contextmanager
def scripted_decisions() -> Iterator[ScriptedLlama]:
    """A running server, whose slots can be erased."""
    entry = {
        "id": MODEL,
        "architecture": {"input_modalities": ["text"], "output_modalities": ["decisions"]},
        "meta": {"n_ctx": 64, "n_vocab": 1000},
    }
    with scripted_llama() as server:
        server.answers = {"/v1/models": Answer({"data": [entry]}), ENDPOINT: respond}
        server.answers |= {
            ERASE.format(slot): Answer({"id_slot": slot, "n_erased": 3}) for slot in range(SLOTS)
        }
        yield server
