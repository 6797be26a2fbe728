"""What a session keeps of what the server says of itself."""

import hashlib
from pathlib import Path

import pytest

from jevexp.backends.llama_cpp import LlamaCpp
from jevexp.core.json import dumps
from tests.support.llama import backend_settings, model_identity
from tests.support.scripted_llama import Answer, ScriptedLlama


def test_the_facts_of_both_endpoints_are_kept(backend: LlamaCpp, server: ScriptedLlama) -> None:
    assert backend.describe() == {
        "kind": "llama_cpp",
        "managed": False,
        "base_url": server.url,
        "gguf": None,
        "library": None,
        "cache_type_k": None,
        "cache_type_v": None,
        "build_info": "b1-abc",
        "model": "scripted",
        "model_alias": "scripted",
        "model_path": "/models/scripted.gguf",
        "ftype": "Q4_K - Medium",
        "n_params": 5,
        "size": None,
        "n_vocab": None,
        "n_ctx": 32,
        "n_ctx_train": None,
        "n_embd": None,
        "total_slots": 4,
        "chat_template_sha256": hashlib.sha256(b"{{ messages }}").hexdigest(),
        "modalities": {"vision": False},
        "output_modalities": None,
        "decision_type": None,
        "prompt_version": "1",
        "template_kwargs": {"enable_thinking": False},
        "readout": {"version": "1", "bias": 12.0, "extra_probs": 4},
    }


@pytest.mark.parametrize(
    "answer",
    [
        Answer({}, status=404),
        Answer(b"nonsense"),
        Answer([]),
        Answer({}),
        Answer({"build_info": 3, "total_slots": "x", "modalities": [], "chat_template": {}}),
        Answer({"default_generation_settings": {"n_ctx": 1.5}}),
    ],
)
def test_silence_about_properties_is_null(
    server: ScriptedLlama, tmp_path: Path, answer: Answer
) -> None:
    server.answers["/props"] = answer
    backend = LlamaCpp(backend_settings(base_url=server.url), model_identity()).open(tmp_path)
    facts = backend.describe()
    backend.close()
    unknown = ("build_info", "model_alias", "model_path", "total_slots", "chat_template_sha256")
    assert {facts[name] for name in unknown} == {None}
    assert (facts["model"], facts["ftype"], facts["n_ctx"]) == ("scripted", "Q4_K - Medium", 64)
    dumps(facts)


def test_an_older_build_s_file_type_comes_from_where_it_is(
    server: ScriptedLlama, tmp_path: Path
) -> None:
    server.answers["/v1/models"] = Answer({"data": [{"id": "m", "meta": None}]})
    server.answers["/props"] = Answer({"model_ftype": "Q8_0"})
    backend = LlamaCpp(backend_settings(base_url=server.url), model_identity()).open(tmp_path)
    assert backend.describe()["ftype"] == "Q8_0"
    backend.close()
