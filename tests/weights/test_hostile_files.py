"""A file that lies is refused in one line, at once, and without filling the memory."""

import errno
import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jevexp.weights.digest import WeightsError
from jevexp.weights.gguf import read_header
from tests.weights import gguf_bytes
from tests.weights.gguf_bytes import ARRAY, STRING, UINT8, array, key, start, tensor, text

HUGE = 1 << 60
MEMORY = 200 << 20
SECONDS = 2.0
ROOT = Path(__file__).parents[2]
LLAMA: dict[str, int | str] = {"general.architecture": "llama"}
KEV = LLAMA | {"llama.decision.type": "kev"}


def sparse(path: Path, head: bytes, size: int) -> None:
    """`head`, then zeros up to `size` that take no room on the disk."""
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size)


def unknown_kind(name: str, kind: int) -> bytes:
    return text(name) + struct.pack("<I", kind)


HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "text": (b"hello, world", "not a GGUF file: begins with b'hell'"),
    "short": (b"GG", "not a GGUF file: begins with b'GG'"),
    "magic only": (b"GGUF", "ends early: the version needs 4 bytes at 4, found 4 in all"),
    "big-endian": (
        b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
        "a big-endian GGUF file, which cannot be served on this machine",
    ),
    "version": (start(0, 0, version=1), "GGUF version 1; versions 2 and 3 can be read"),
    "tensors": (start(HUGE, 0), f"claims {HUGE} tensors; at most 65536 can be read"),
    "keys": (start(0, HUGE), f"claims {HUGE} keys; at most 16384 can be read"),
    "some keys": (start(0, 1000), "claims 1000 keys in 24 bytes"),
    "some tensors": (start(1000, 0), "claims 1000 tensors in 24 bytes"),
    "key": (
        start(0, 1) + struct.pack("<Q", HUGE) + bytes(64),
        f"a key claims {HUGE} bytes; at most 1024 can be read",
    ),
    "value": (
        start(0, 1) + text("a.b") + struct.pack("<IQ", STRING, HUGE) + bytes(64),
        f"ends early: a.b needs {HUGE} bytes at 47, found 111 in all",
    ),
    "name": (
        start(0, 1) + text("general.name") + struct.pack("<IQ", STRING, HUGE) + bytes(64),
        f"general.name claims {HUGE} bytes; at most 4096 can be read",
    ),
    "template": (
        start(0, 1) + text("tokenizer.chat_template") + struct.pack("<IQ", STRING, HUGE),
        f"tokenizer.chat_template claims {HUGE} bytes; at most 16777216 can be read",
    ),
    "numbers": (
        start(0, 1) + array("a.b", UINT8, HUGE, bytes(64)),
        f"ends early: a.b needs {HUGE} bytes at 51, found 115 in all",
    ),
    "texts": (
        start(0, 1) + array("tokenizer.ggml.tokens", STRING, HUGE, bytes(64)),
        f"tokenizer.ggml.tokens claims {HUGE} texts",
    ),
    "few texts": (
        start(0, 1) + array("tokenizer.ggml.tokens", STRING, 1000, bytes(64)),
        "ends early: tokenizer.ggml.tokens holds 1000 texts, found fewer",
    ),
    "nested": (
        start(0, 1) + array("a.b", ARRAY, HUGE, bytes(64)),
        "a.b is an array of arrays",
    ),
    "kind": (start(0, 1) + unknown_kind("a.b", 13) + bytes(64), "a.b has the unknown type 13"),
    "line ends": (
        start(0, 1) + unknown_kind("a\n\x1b[2J", 13) + bytes(64),
        r"a\n\x1b[2J has the unknown type 13",
    ),
    "element": (
        start(0, 1) + array("a.b", 13, 1, bytes(64)),
        "a.b has the unknown type 13",
    ),
    "twice": (
        gguf_bytes.start(0, 2) + key("general.file_type", 15) + key("general.file_type", 7),
        "the key 'general.file_type' occurs twice",
    ),
    "alignment": (
        gguf_bytes.model({"general.alignment": 0}, {"a": gguf_bytes.F32}),
        "general.alignment is 0, not a power of two",
    ),
    "dimensions": (
        start(1, 0) + text("t") + struct.pack("<I", 1 << 31) + bytes(64),
        "the tensor 't' claims 2147483648 dimensions",
    ),
    "elements": (
        start(1, 0) + tensor("t", 999, [HUGE, HUGE, HUGE, HUGE], 0),
        f"the tensor 't' claims {HUGE**4} elements",
    ),
    "tensor": (
        start(1, 0) + tensor("t", gguf_bytes.F32, [1 << 40], 0) + bytes(64),
        f"ends early: its tensors need {64 + (4 << 40)} bytes, found 121",
    ),
    "offset": (
        start(1, 0) + tensor("t", gguf_bytes.F32, [1], HUGE) + bytes(64),
        f"ends early: its tensors need {64 + HUGE + 4} bytes, found 121",
    ),
    "decision list": (
        gguf_bytes.model(LLAMA, arrays=[array("llama.decision.type", UINT8, 1, b"a")]),
        "llama.decision.type is a list, not a text",
    ),
    "decision number": (
        gguf_bytes.model(LLAMA | {"llama.decision.type": 7}),
        "llama.decision.type is 7, not a text",
    ),
    "temperature": (
        gguf_bytes.model(KEV | {"llama.decision.temperature.noul": "warm"}),
        "llama.decision.temperature.noul is 'warm', not a 32-bit float or a text of one",
    ),
    "whole temperature": (
        gguf_bytes.model(KEV | {"llama.decision.temperature.noul": 2}),
        "llama.decision.temperature.noul is 2, not a 32-bit float or a text of one",
    ),
    "endless temperature": (
        gguf_bytes.model(KEV | {"llama.decision.temperature.noul": "1e39"}),
        "llama.decision.temperature.noul is '1e39', not a 32-bit float or a text of one",
    ),
    "decision name": (
        gguf_bytes.model(KEV | {"llama.decision.a\n${b}": 2}),
        r"the key 'llama.decision.a\n${b}' is no name of a decision model's setting",
    ),
    "decision texts": (
        gguf_bytes.model({f"{n}.decision.a": "" for n in range(300)}),
        "claims more than 256 texts of a decision",
    ),
    "cut": (
        gguf_bytes.model({"general.name": "cut"}, {"a": gguf_bytes.Q4_K})[:-100],
        "ends early: its tensors need",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    content, reason = HOSTILE[name]
    path = tmp_path / "hostile.gguf"
    path.write_bytes(content)
    with pytest.raises(WeightsError) as caught:
        read_header(path)
    assert str(caught.value).startswith(f"{path}: {reason}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cut", range(24, 350, 25))
def test_a_file_that_ends_anywhere_is_refused(tmp_path: Path, cut: int) -> None:
    path = gguf_bytes.quantized(tmp_path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(WeightsError, match=r"ends early|claims \d tensors in"):
        read_header(path)


def test_hostile_files_cost_neither_time_nor_memory(tmp_path: Path) -> None:
    good = gguf_bytes.quantized(tmp_path)
    files = []
    for index, (content, _) in enumerate(HOSTILE.values()):
        files.append(tmp_path / f"{index}.gguf")
        files[-1].write_bytes(content)
    # Files as large as they claim to be, and as many things in them as are believed at most.
    large: dict[str, tuple[bytes, int]] = {
        "numbers": (start(0, 1) + array("a.b", UINT8, 1 << 40), (1 << 40) + 4096),
        "texts": (start(0, 1) + array("a.b", STRING, 1_500_000), (1 << 24) + 4096),
        "more texts": (start(0, 1) + array("a.b", STRING, 1 << 30), (1 << 34) + 4096),
        "tensors": (start(1 << 16, 0), 1 << 30),
        "template": (
            start(0, 1) + text("tokenizer.chat_template") + struct.pack("<IQ", STRING, 1 << 24),
            1 << 30,
        ),
    }
    for name, (head, size) in large.items():
        files.append(tmp_path / f"{name}.gguf")
        sparse(files[-1], head, size)
    keys = b"".join(key(f"{number:<1024}", number) for number in range(1 << 14))
    files.append(tmp_path / "keys.gguf")
    files[-1].write_bytes(start(0, 1 << 14) + keys)
    done = subprocess.run(
        [sys.executable, "-m", "tests.weights.hostile", str(good), *map(str, files)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    refused, peak = json.loads(done.stdout)
    assert peak < MEMORY
    assert {name: seconds for name, (seconds, _) in refused.items() if seconds > SECONDS} == {}
    assert len(refused) == len(files)


def folder(path: Path) -> None:
    path.mkdir()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def nothing(path: Path) -> None:
    path.unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (folder, "expected a file, found a folder"),
        (pipe, "expected a file, found a pipe"),
        (nothing, "cannot be read: No such file or directory"),
    ],
)
def test_what_is_no_file_is_refused_without_waiting(
    tmp_path: Path, make: Callable[[Path], None], reason: str
) -> None:
    path = tmp_path / "model.gguf"
    make(path)
    with pytest.raises(WeightsError) as caught:
        read_header(path)
    assert str(caught.value) == f"{path}: {reason}"


def test_a_device_is_refused() -> None:
    with pytest.raises(WeightsError, match="/dev/zero: expected a file, found a device"):
        read_header(Path("/dev/zero"))


def test_a_path_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(WeightsError, match="no path can hold that"):
        read_header(Path("model\0.gguf"))


def test_a_file_that_may_not_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = gguf_bytes.quantized(tmp_path)

    def refuse(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    # By hand, since root may read everything.
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(WeightsError, match=r"model\.gguf: cannot be read: Permission denied"):
        read_header(path)
