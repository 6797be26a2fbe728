"""What a GGUF file says of itself, read from its start within fixed limits and without weights.

The `gguf` library's reader keeps every element of every array as an object of its own: for a
vocabulary of 262,144 tokens that is 716 MB and 14 s, and for a hostile file whatever the file
says. Here arrays are stepped over, every count is checked against the file's size before it is
believed, and nothing is kept but scalars, a few short texts and one count a tensor type.
"""

import hashlib
import math
import os
import re
import struct
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from jevexp.core.ftype import Ftype, ftype_of
from jevexp.weights.digest import WeightsError, opened, parts_of

MAGIC = b"GGUF"
# Far above any real model, and low enough that the worst file is refused within a second or so.
_MOST_KEYS = 1 << 14
_MOST_TENSORS = 1 << 16
_MOST_STRINGS = 1_500_000
_LONGEST_KEY = 1 << 10
_LONGEST_TEXT = 1 << 12
_LONGEST_TEMPLATE = 1 << 24
# ggml's own limits.
_MOST_DIMENSIONS = 4
_MOST_ELEMENTS = (1 << 63) - 1

_TEMPLATE = "tokenizer.chat_template"
_TEXTS = ("general.name", "general.architecture", "general.size_label")
# What makes a model a decision model; see docs/reference/identity.md.
_DECISION_TEMPLATE = f"{_TEMPLATE}.systemone"
_DECISION, _TEMPERATURE = ".decision.", "temperature."
_MOST_DECISION_TEXTS = 256
_LARGEST_FLOAT = 3.4e38
_DECISION_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_STRING, _ARRAY = 8, 9
# The format's number of each scalar type, and how struct reads it.
_SCALARS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q",
    12: "<d",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionHeader:
    """What makes a file a decision model.

    Attributes:
        type: such as "kev"; it decides how the answer is read.
        temperatures: by what they are for, such as "choice" or "score.3_5": what scores are divided
            by before their softmax, each the shortest decimal that is the header's 32-bit float.
        template_sha256: of the text, in UTF-8, of the template that renders a question.
        settings: its further keys, such as "max_head_tokens"; lists are left out.
    """

    type: str
    temperatures: dict[str, float]
    template_sha256: str | None
    settings: dict[str, int | float | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufHeader:
    """One model's header; of a split model, all parts together. Null: the header does not say.

    Attributes:
        ftype: the file type; null also where the installed `gguf` library does not know it;
            `ftype_number` is what stands in the header.
        tensor_types: how many tensors have which type, the most frequent first.
        n_params: elements of all tensors.
        tensor_bytes: what the tensors occupy.
        chat_template_sha256: of the template's text in UTF-8.
        context_length: the context that the model was made for, in tokens.
        n_vocab: tokens in the vocabulary.
        parts: files that the model is in.
        decision: what makes it a decision model; null for any other model.
    """

    name: str | None
    architecture: str | None
    ftype: Ftype | None
    ftype_number: int | None
    size_label: str | None
    quantization_version: int | None
    tensor_types: dict[str, int]
    n_params: int
    tensor_bytes: int
    chat_template_sha256: str | None
    context_length: int | None
    n_vocab: int | None
    parts: int
    decision: DecisionHeader | None


@dataclass(slots=True)
class _Metadata:
    """One file's scalars and chosen texts, its arrays' lengths, and its tensors by type."""

    values: dict[str, int | float | str] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    # By the templates' keys.
    template_sha256: dict[str, str] = field(default_factory=dict)
    # By the format's number of a type.
    tensor_types: Counter[int] = field(default_factory=Counter)
    n_params: int = 0
    tensor_bytes: int = 0

    def text(self, key: str) -> str | None:
        value = self.values.get(key)
        return value if isinstance(value, str) else None

    def whole(self, key: str) -> int | None:
        value = self.values.get(key)
        return value if type(value) is int else None


def read_header(path: Path) -> GgufHeader:
    """Read the header of the GGUF file at `path`; of a split model, of every part.

    At most a few megabytes are read and kept, whatever the file claims.

    Raises WeightsError: in one line, the file and what was found.
    """
    from gguf import GGMLQuantizationType

    files = parts_of(path)
    metadata: list[_Metadata] = []
    decision = None
    for file_path in files:
        with opened(file_path) as file:
            try:
                metadata.append(_Walk(file, os.fstat(file.fileno()).st_size).metadata())
                decision = decision if len(metadata) > 1 else _decision(metadata[0])
            except _Malformed as error:
                raise WeightsError(f"{file_path}: {error}") from error
    _check_parts(files, metadata)
    first = metadata[0]
    architecture = first.text("general.architecture")
    number = first.whole("general.file_type")
    names = {int(kind): str(kind.name) for kind in GGMLQuantizationType}
    types = sum((part.tensor_types for part in metadata), Counter[int]())
    counts = {names.get(kind, f"TYPE_{kind}"): count for kind, count in types.items()}
    return GgufHeader(
        name=first.text("general.name"),
        architecture=architecture,
        ftype=None if number is None else ftype_of(number),
        ftype_number=number,
        size_label=first.text("general.size_label"),
        quantization_version=first.whole("general.quantization_version"),
        tensor_types=dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))),
        n_params=sum(part.n_params for part in metadata),
        tensor_bytes=sum(part.tensor_bytes for part in metadata),
        chat_template_sha256=first.template_sha256.get(_TEMPLATE),
        context_length=first.whole(f"{architecture}.context_length"),
        n_vocab=first.lengths.get("tokenizer.ggml.tokens")
        or first.whole(f"{architecture}.vocab_size"),
        parts=len(files),
        decision=decision,
    )


def _decision(metadata: _Metadata) -> DecisionHeader | None:
    """What the keys `<architecture>.decision.*` say; raises _Malformed."""
    prefix = f"{metadata.text('general.architecture')}{_DECISION}"
    temperatures, settings = {}, {}
    for key, value in metadata.values.items():
        if not key.startswith(prefix):
            continue
        name = key.removeprefix(prefix)
        if not _DECISION_NAME.fullmatch(name):
            raise _Malformed(f"the key {key!r} is no name of a decision model's setting")
        if name.startswith(_TEMPERATURE):
            temperatures[name.removeprefix(_TEMPERATURE)] = _temperature(key, value)
        elif isinstance(value, float) and not math.isfinite(value):
            raise _Malformed(f"{key} is {value}, not a number")
        else:
            settings[name] = value
    kind = settings.pop("type", None)
    if kind is None and f"{prefix}type" not in metadata.lengths:
        return None
    if not isinstance(kind, str) or not kind:
        raise _Malformed(f"{prefix}type is {'a list' if kind is None else repr(kind)}, not a text")
    template = metadata.template_sha256.get(_DECISION_TEMPLATE)
    return DecisionHeader(
        type=kind, temperatures=temperatures, template_sha256=template, settings=settings
    )


def _temperature(key: str, value: float | str) -> float:
    """The shortest decimal that is the value as a 32-bit float; servers take texts as well."""
    import numpy as np

    try:
        number = float(value) if isinstance(value, str | float) else math.nan
    except ValueError:
        number = math.nan
    if not abs(number) <= _LARGEST_FLOAT:
        raise _Malformed(f"{key} is {value!r}, not a 32-bit float or a text of one")
    return float(str(np.float32(number)))


def _check_parts(files: tuple[Path, ...], metadata: list[_Metadata]) -> None:
    """Whether the headers agree with the names about what is split into what."""
    for index, (file, part) in enumerate(zip(files, metadata, strict=True)):
        count = part.whole("split.count") or 1
        if count != len(files):
            raise WeightsError(
                f"{file}: its header says {count} parts, its name says {len(files)}; "
                "parts are named NAME-00001-of-00003.gguf"
            )
        number = part.whole("split.no") or 0
        if number != index:
            raise WeightsError(
                f"{file}: its header says part {number + 1}, its name says part {index + 1}"
            )
    expected = metadata[0].whole("split.tensors.count")
    n_tensors = sum(part.tensor_types.total() for part in metadata)
    if len(files) > 1 and expected is not None and expected != n_tensors:
        raise WeightsError(
            f"{files[0]}: expected {expected} tensors in all parts, found {n_tensors}"
        )


class _Malformed(Exception):
    """The file is not what it should be; says what was found."""


class _Walk:
    """One pass from the first byte to the last tensor's description."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self._at = 0
        self._strings = 0
        self._decision_texts = 0
        self._metadata = _Metadata()

    def metadata(self) -> _Metadata:
        if self._size == 0:
            raise _Malformed("empty")
        magic = self._take(min(self._size, len(MAGIC)), "the first bytes")
        if magic != MAGIC:
            raise _Malformed(f"not a GGUF file: begins with {magic!r}")
        version = self._number("<I", "the version")
        if version & 0xFFFF == 0:
            raise _Malformed("a big-endian GGUF file, which cannot be served on this machine")
        if version not in (2, 3):
            raise _Malformed(f"GGUF version {version}; versions 2 and 3 can be read")
        n_tensors = self._count("tensors", _MOST_TENSORS, least_bytes=24)
        seen: set[str] = set()
        for _ in range(self._count("keys", _MOST_KEYS, least_bytes=13)):
            key = self._text("a key", _LONGEST_KEY)
            if key in seen:
                raise _Malformed(f"the key {key!r} occurs twice")
            seen.add(key)
            self._value(key)
        self._tensors(n_tensors)
        return self._metadata

    def _value(self, key: str) -> None:
        kind = self._number("<I", f"the type of {key}")
        if kind == _ARRAY:
            self._array(key)
        elif kind != _STRING:
            self._metadata.values[key] = self._number(self._format(kind, key), key)
        elif key in (_TEMPLATE, _DECISION_TEMPLATE):
            text = self._bytes(key, _LONGEST_TEMPLATE)
            self._metadata.template_sha256[key] = hashlib.sha256(text).hexdigest()
        elif key in _TEXTS or _DECISION in key:
            self._decision_texts += _DECISION in key
            if self._decision_texts > _MOST_DECISION_TEXTS:
                raise _Malformed(f"claims more than {_MOST_DECISION_TEXTS} texts of a decision")
            self._metadata.values[key] = self._text(key, _LONGEST_TEXT)
        else:
            self._skip(self._number("<Q", key), key)

    def _array(self, key: str) -> None:
        kind = self._number("<I", key)
        length = self._number("<Q", key)
        if kind == _ARRAY:
            raise _Malformed(f"{key} is an array of arrays")
        if kind == _STRING:
            self._strings += length
            if self._strings > _MOST_STRINGS:
                raise _Malformed(f"{key} claims {length} texts")
            self._skip_texts(length, key)
        else:
            self._skip(length * struct.calcsize(self._format(kind, key)), key)
        self._metadata.lengths[key] = length

    def _skip_texts(self, count: int, what: str) -> None:
        # The longest loop of all, hence without the checks of _take.
        read, seek, at = self._file.read, self._file.seek, self._at
        for _ in range(count):
            raw = read(8)
            length = int.from_bytes(raw, "little")
            at += 8 + length
            if len(raw) < 8 or at > self._size:
                raise _Malformed(f"ends early: {what} holds {count} texts, found fewer")
            seek(length, os.SEEK_CUR)
        self._at = at

    def _format(self, kind: int, key: str) -> str:
        if kind not in _SCALARS:
            raise _Malformed(f"{key} has the unknown type {kind}")
        return _SCALARS[kind]

    def _tensors(self, count: int) -> None:
        """The tensors' descriptions, and whether the file is long enough for all of them."""
        from gguf import GGML_QUANT_SIZES

        # The elements of a block and the bytes that it occupies, by the format's number of a type.
        sizes = {int(kind): size for kind, size in GGML_QUANT_SIZES.items()}
        metadata = self._metadata
        end = 0
        for _ in range(count):
            name = self._text("a tensor's name", _LONGEST_KEY)
            dimensions = self._number("<I", name)
            if dimensions > _MOST_DIMENSIONS:
                raise _Malformed(f"the tensor {name!r} claims {dimensions} dimensions")
            elements = 1
            for _ in range(dimensions):
                elements *= self._number("<Q", name)
            if elements > _MOST_ELEMENTS:
                raise _Malformed(f"the tensor {name!r} claims {elements} elements")
            kind = self._number("<I", name)
            offset = self._number("<Q", name)
            # What a type unknown here occupies is unknown too.
            block, occupied = sizes.get(kind, (1, 0))
            size = elements // block * occupied
            end = max(end, offset + size)
            metadata.tensor_types[kind] += 1
            metadata.n_params += elements
            metadata.tensor_bytes += size
        alignment = metadata.values.get("general.alignment", 32)
        if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
            raise _Malformed(f"general.alignment is {alignment!r}, not a power of two")
        needed = -(-self._at // alignment) * alignment + end if count else 0
        if needed > self._size:
            raise _Malformed(f"ends early: its tensors need {needed} bytes, found {self._size}")

    def _count(self, what: str, most: int, *, least_bytes: int) -> int:
        count: int = self._number("<Q", f"the number of {what}")
        if count > most:
            raise _Malformed(f"claims {count} {what}; at most {most} can be read")
        if count * least_bytes > self._size:
            raise _Malformed(f"claims {count} {what} in {self._size} bytes")
        return count

    def _text(self, what: str, longest: int) -> str:
        return self._bytes(what, longest).decode("utf-8", "replace")

    def _bytes(self, what: str, longest: int) -> bytes:
        length = self._number("<Q", what)
        if length > longest:
            raise _Malformed(f"{what} claims {length} bytes; at most {longest} can be read")
        return self._take(length, what)

    def _number(self, form: str, what: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form), what))[0]

    def _take(self, count: int, what: str) -> bytes:
        self._advance(count, what)
        taken = self._file.read(count)
        if len(taken) < count:
            raise _Malformed(f"shrank while it was read, at {what}")
        return taken

    def _skip(self, count: int, what: str) -> None:
        self._advance(count, what)
        self._file.seek(count, os.SEEK_CUR)

    def _advance(self, count: int, what: str) -> None:
        if self._at + count > self._size:
            raise _Malformed(
                f"ends early: {what} needs {count} bytes at {self._at}, found {self._size} in all"
            )
        self._at += count
