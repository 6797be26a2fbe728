"""Where each limit of a header is: the last that is read, and the first that is not."""

import struct
from pathlib import Path

import pytest

from jevexp.weights.digest import WeightsError
from jevexp.weights.gguf import GgufHeader, read_header
from tests.weights import gguf_bytes
from tests.weights.gguf_bytes import (
    F32,
    Q2_K,
    Q4_K,
    STRING,
    UINT8,
    UINT32,
    array,
    key,
    start,
    tensor,
    text,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


def why_not(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(WeightsError) as caught:
        read_header(path)
    return str(caught.value).removeprefix(f"{path}: ")


def header(path: Path, content: bytes) -> GgufHeader:
    path.write_bytes(content)
    return read_header(path)


def long_text(name: str, length: int) -> bytes:
    return start(0, 1) + text(name) + struct.pack("<I", STRING) + text("x" * length)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (start(65536, 0), "claims 65536 tensors in 24 bytes"),
        (start(65537, 0), "claims 65537 tensors; at most 65536 can be read"),
        (start(0, 16384), "claims 16384 keys in 24 bytes"),
        (start(0, 16385), "claims 16385 keys; at most 16384 can be read"),
        (start(2, 0) + bytes(23), "claims 2 tensors in 47 bytes"),
        (start(2, 0) + bytes(24), "ends early: "),
        (start(0, 2) + bytes(1), "claims 2 keys in 25 bytes"),
        (start(0, 2) + bytes(2), "ends early: a key needs 8 bytes at 24, found 26 in all"),
        (long_text("k" * 1025, 0), "a key claims 1025 bytes; at most 1024 can be read"),
        (long_text("general.name", 4097), "general.name claims 4097 bytes; at most 4096"),
        (
            start(0, 1) + array("a", STRING, 1_500_000),
            "ends early: a holds 1500000 texts, found fewer",
        ),
        (start(0, 1) + array("a", STRING, 1_500_001), "a claims 1500001 texts"),
        (
            start(0, 2) + array("a", STRING, 1, text("")) + array("b", STRING, 1_500_000),
            "b claims 1500000 texts",
        ),
        (start(0, 1) + array("a", STRING, 2, text("x") + bytes(7)), "ends early: a holds 2 texts"),
        (start(0, 1) + array("a", STRING, 1, text("xy")[:-1]), "ends early: a holds 1 texts"),
        (start(1, 0) + tensor("t", F32, [1] * 5, 0) + bytes(64), "the tensor 't' claims 5 dim"),
        (
            start(1, 0) + tensor("t", 999, [1 << 62, 2], 0) + bytes(64),
            f"the tensor 't' claims {1 << 63} elements",
        ),
        (start(0, 0, version=4), "GGUF version 4; versions 2 and 3 can be read"),
        (start(0, 0, version=1 << 16), "a big-endian GGUF file"),
        (gguf_bytes.model({"general.alignment": 3}), "general.alignment is 3, not a power of two"),
        (gguf_bytes.model({}, {"a": F32})[:-29], "ends early: its tensors need 68 bytes, found 67"),
    ],
)
def test_one_beyond_a_limit_is_refused(path: Path, content: bytes, reason: str) -> None:
    assert why_not(path, content).startswith(reason)


def test_the_last_within_a_limit_is_read(path: Path) -> None:
    assert header(path, long_text("k" * 1024, 0)).parts == 1
    assert header(path, long_text("general.name", 4096)).name == "x" * 4096
    assert header(path, long_text("general.other", 4097)).name is None
    assert header(path, start(0, 1) + array("a", STRING, 2, text("x") + text(""))).parts == 1
    assert header(path, start(0, 1) + array("a", UINT32, 2, bytes(8))).parts == 1
    most = tensor("t", 999, [(1 << 63) - 1, 1, 1, 1], 0)
    assert header(path, start(1, 0) + most + bytes(64)).n_params == (1 << 63) - 1
    # A tensor ends where the file does.
    assert header(path, gguf_bytes.model({}, {"a": F32})[:-28]).tensor_bytes == 4
    assert header(path, start(0, 0, version=2)).parts == 1


def test_a_template_ends_at_16_mib(path: Path) -> None:
    name = "tokenizer.chat_template"
    assert header(path, long_text(name, 1 << 24)).chat_template_sha256 is not None
    assert why_not(path, start(0, 1) + text(name) + struct.pack("<IQ", STRING, (1 << 24) + 1)) == (
        f"{name} claims 16777217 bytes; at most 16777216 can be read"
    )


@pytest.mark.parametrize("alignment", [1, 2, 32, 64, 4096])
def test_the_first_tensor_begins_at_the_next_multiple(path: Path, alignment: int) -> None:
    head = start(1, 1) + key("general.alignment", alignment) + tensor("t", F32, [1], 0)
    needed = (len(head) + alignment - 1) // alignment * alignment + 4
    assert header(path, head.ljust(needed, b"\0")).n_params == 1
    assert why_not(path, head.ljust(needed - 1, b"\0")) == (
        f"ends early: its tensors need {needed} bytes, found {needed - 1}"
    )


def test_the_tensor_that_ends_last_counts_and_not_the_last_one(path: Path) -> None:
    head = start(2, 0) + tensor("late", F32, [3], 64) + tensor("early", Q2_K, [256], 0)
    whole = head + bytes(-len(head) % 32) + bytes(84)
    read = header(path, whole)
    assert (read.n_params, read.tensor_bytes) == (259, 96)
    assert read.tensor_types == {"F32": 1, "Q2_K": 1}
    further = head.replace(struct.pack("<Q", 64), struct.pack("<Q", 96))
    assert why_not(path, further + bytes(-len(head) % 32) + bytes(84)).startswith("ends early")


@pytest.mark.parametrize(
    ("kind", "form", "value", "context"),
    [
        (0, "<B", 200, 200), (1, "<b", -2, -2), (2, "<H", 60_000, 60_000), (3, "<h", -300, -300),
        (4, "<I", 1 << 31, 1 << 31), (5, "<i", -1, -1), (6, "<f", 8.0, None), (7, "<?", True, None),
        (10, "<Q", 1 << 63, 1 << 63), (11, "<q", -1, -1), (12, "<d", 8.0, None),
    ],
)  # fmt: skip
def test_every_scalar_has_its_size_and_sign(
    path: Path, kind: int, form: str, value: float, context: int | None
) -> None:
    architecture = key("general.architecture", "llama")
    number = text("llama.context_length") + struct.pack("<I", kind) + struct.pack(form, value)
    length = text("a") + struct.pack("<IIQ", 9, kind, 3) + struct.pack(form, value) * 3
    last = key("general.file_type", 15)
    read = header(path, start(0, 4) + architecture + number + length + last)
    assert (read.context_length, read.ftype_number) == (context, 15)


def test_everything_that_a_header_says_is_read(path: Path) -> None:
    keys: dict[str, int | str] = {
        "general.name": "A",
        "general.architecture": "b",
        "general.size_label": "C",
        "general.quantization_version": 2,
        "b.vocab_size": 7,
        "b.context_length": 9,
        "split.tensors.count": 5,
    }
    content = gguf_bytes.model(keys, {"x": Q4_K, "y": F32, "z": Q4_K, "v": Q2_K})
    read = header(path, content)
    assert (read.name, read.architecture, read.size_label) == ("A", "b", "C")
    assert (read.quantization_version, read.n_vocab, read.context_length) == (2, 7, 9)
    assert list(read.tensor_types.items()) == [("Q4_K", 2), ("F32", 1), ("Q2_K", 1)]
    tokens = array("tokenizer.ggml.tokens", STRING, 2, text("a") + text("b"))
    assert header(path, gguf_bytes.model(keys, arrays=[tokens])).n_vocab == 2
    numbers = array("other", UINT8, 3, bytes(3))
    assert header(path, gguf_bytes.model(keys, arrays=[numbers])).n_vocab == 7


def test_parts_agree_where_they_say_something(tmp_path: Path) -> None:
    first, second = gguf_bytes.split(tmp_path, 2)
    keys: dict[str, int | str] = {"split.no": 0, "split.count": 2}
    first.write_bytes(gguf_bytes.model(keys, {"one": Q4_K}))
    assert read_header(second).n_params == 3 * 256
    first.write_bytes(gguf_bytes.model({"split.count": 2}, {"one": Q4_K}))
    assert read_header(first).parts == 2
    first.write_bytes(gguf_bytes.model({"split.no": 1, "split.count": 2}, {"one": Q4_K}))
    with pytest.raises(WeightsError, match="its header says part 2, its name says part 1"):
        read_header(first)
    first.write_bytes(gguf_bytes.model({}, {"one": Q4_K}))
    with pytest.raises(WeightsError, match="its header says 1 parts, its name says 2"):
        read_header(first)
