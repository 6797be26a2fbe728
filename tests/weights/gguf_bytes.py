"""GGUF files byte by byte: right ones that no server needs to load, and wrong ones."""

import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

UINT8, UINT16, UINT32, INT32, FLOAT32, STRING, ARRAY, UINT64 = 0, 2, 4, 5, 6, 8, 9, 10
F32, Q4_0, Q8_0, Q2_K, Q4_K = 0, 2, 8, 10, 12
# A block of 32 Q8_0 weights, and what it occupies.
BLOCK_SIZES = {F32: (1, 4), Q4_0: (32, 18), Q8_0: (32, 34), Q2_K: (256, 84), Q4_K: (256, 144)}


def text(value: str) -> bytes:
    """A string as the format has it."""
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def key(name: str, value: int | str) -> bytes:
    """A key with a 32 bit number or a text."""
    if isinstance(value, str):
        return text(name) + struct.pack("<I", STRING) + text(value)
    return text(name) + struct.pack("<II", UINT32, value)


def array(name: str, kind: int, length: int, content: bytes = b"") -> bytes:
    """A key with an array that claims `length` elements."""
    return text(name) + struct.pack("<IIQ", ARRAY, kind, length) + content


def tensor(name: str, kind: int, shape: Iterable[int], offset: int) -> bytes:
    """A tensor's description."""
    sizes = list(shape)
    return (
        text(name)
        + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
        + struct.pack("<IQ", kind, offset)
    )


def start(n_tensors: int, n_keys: int, *, version: int = 3) -> bytes:
    """Magic, version and counts."""
    return b"GGUF" + struct.pack("<IQQ", version, n_tensors, n_keys)


def model(
    keys: Mapping[str, int | str] | None = None,
    tensors: Mapping[str, int] | None = None,
    *,
    arrays: Iterable[bytes] = (),
) -> bytes:
    """A whole file: keys, then tensors of one block each by name and type, their bytes zero."""
    lists = list(arrays)
    fields = [key(name, value) for name, value in (keys or {}).items()] + lists
    described, data = [], b""
    for name, kind in (tensors or {}).items():
        elements, occupied = BLOCK_SIZES[kind]
        described.append(tensor(name, kind, [elements], len(data)))
        data += bytes(occupied + -occupied % 32)
    head = start(len(described), len(fields)) + b"".join(fields) + b"".join(described)
    return head + bytes(-len(head) % 32) + data


def quantized(folder: Path, ftype: int | None = 10, *, name: str = "model.gguf") -> Path:
    """A model with a header of file type `ftype`; 10 is Q2_K."""
    keys: dict[str, int | str] = {
        "general.architecture": "llama",
        "general.name": "A Model",
        "llama.context_length": 8192,
        "tokenizer.chat_template": "{{ messages }}",
    }
    if ftype is not None:
        keys["general.file_type"] = ftype
    path = folder / name
    path.write_bytes(model(keys, {"a": Q2_K, "b": Q2_K, "c": F32}))
    return path


def split(folder: Path, count: int = 3) -> list[Path]:
    """A model in `count` files, each with one tensor more than the one before."""
    paths = []
    total = sum(range(1, count + 1))
    for index in range(count):
        keys: dict[str, int | str] = {"split.no": index, "split.count": count}
        if index == 0:
            keys |= {"general.architecture": "llama", "general.file_type": 15}
            keys |= {"split.tensors.count": total}
        tensors = {f"t{index}.{number}": Q4_K for number in range(index + 1)}
        path = folder / f"big-{index + 1:05}-of-{count:05}.gguf"
        path.write_bytes(model(keys, tensors))
        paths.append(path)
    return paths
