"""A llama.cpp model of a few hundred kilobytes: random weights, a working tokenizer."""

from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np

CHATML = (
    "{% for message in messages %}"
    "<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# The same, thinking unless it is told not to, as newer models do.
THINKING = CHATML.replace(
    "assistant\n{% endif %}",
    "assistant\n<think>\n"
    "{% if enable_thinking is false %}{{ '\n</think>\n\n' }}{% endif %}{% endif %}",
)
CONTROL = ("<|end|>", "<|im_start|>", "<|im_end|>")
_MERGES = ("y e", "ye s", "n o")
_EMBEDDING, _FORWARD, _HEADS = 64, 128, 2


def write_tiny_gguf(
    path: Path,
    *,
    template: str = CHATML,
    context: int = 4096,
    seed: int = 7,
    control: tuple[str, ...] = CONTROL,
    further_keys: Mapping[str, str | float] | None = None,
) -> Path:
    """Write the model to `path`; equal arguments give equal bytes.

    `further_keys` stand in the header too, a number as a 32-bit float.
    """
    tokens = [*_tokens(), *control]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny random llama")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_context_length(context)
    writer.add_embedding_length(_EMBEDDING)
    writer.add_block_count(1)
    writer.add_feed_forward_length(_FORWARD)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_EMBEDDING // _HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(
        [gguf.TokenType.CONTROL if token in control else gguf.TokenType.NORMAL for token in tokens]
    )
    writer.add_token_merges(list(_MERGES))
    writer.add_bos_token_id(tokens.index("<|end|>"))
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(template)
    for key, value in (further_keys or {}).items():
        if isinstance(value, str):
            writer.add_string(key, value)
        else:
            writer.add_float32(key, value)
    for name, weights in _tensors(len(tokens), np.random.default_rng(seed)):
        writer.add_tensor(name, weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _tokens() -> list[str]:
    """Every byte in GPT-2's printable spelling, then what the merges make."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    spelled = {byte: chr(byte) for byte in printable}
    spelled |= {byte: chr(256 + index) for index, byte in enumerate(others)}
    merged = [merge.replace(" ", "") for merge in _MERGES]
    return [*(spelled[byte] for byte in range(256)), *merged]


def _tensors(
    vocabulary: int, random: np.random.Generator
) -> list[tuple[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]]:
    def normal(
        rows: int, columns: int, scale: float
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return (random.standard_normal((rows, columns)) * scale).astype(np.float32)

    ones = np.ones(_EMBEDDING, dtype=np.float32)
    square = _EMBEDDING**-0.5
    return [
        ("token_embd.weight", normal(vocabulary, _EMBEDDING, 1.0)),
        ("output_norm.weight", ones),
        # Logits with a standard deviation of about 2, so that options differ well.
        ("output.weight", normal(vocabulary, _EMBEDDING, 2 * square)),
        ("blk.0.attn_norm.weight", ones),
        ("blk.0.attn_q.weight", normal(_EMBEDDING, _EMBEDDING, square)),
        ("blk.0.attn_k.weight", normal(_EMBEDDING, _EMBEDDING, square)),
        ("blk.0.attn_v.weight", normal(_EMBEDDING, _EMBEDDING, square)),
        ("blk.0.attn_output.weight", normal(_EMBEDDING, _EMBEDDING, square)),
        ("blk.0.ffn_norm.weight", ones),
        ("blk.0.ffn_gate.weight", normal(_FORWARD, _EMBEDDING, square)),
        ("blk.0.ffn_up.weight", normal(_FORWARD, _EMBEDDING, square)),
        ("blk.0.ffn_down.weight", normal(_EMBEDDING, _FORWARD, _FORWARD**-0.5)),
    ]
