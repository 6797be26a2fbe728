"""What a GGUF file says of itself, from the start of the file and without its weights."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jevexp.core.ftype import Ftype, ftype_of
from jevexp.identity.files import WeightsError
from jevexp.identity.parts import parts_of
from jevexp.identity.preamble import Preamble, read_preamble


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufHeader:
    """One model's header; of a split model, all parts together. Null: the header does not say.

    Attributes:
        ftype: the file type; null also where the installed `gguf` library does not know it.
        ftype_number: the file type as it stands in the header.
        tensor_types: how many tensors have which type, the most frequent first.
        n_params: elements of all tensors.
        tensor_bytes: what the tensors occupy.
        chat_template_sha256: of the template's text in UTF-8.
        context_length: the context that the model was made for, in tokens.
        n_vocab: tokens in the vocabulary.
        parts: files that the model is in.
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


def read_header(path: Path) -> GgufHeader:
    """Read the header of the GGUF file at `path`; of a split model, of every part.

    At most a few megabytes are read and kept, whatever the file claims.

    Raises:
        WeightsError: in one line, the file and what was found.
    """
    files = parts_of(path)
    preambles = [read_preamble(file) for file in files]
    _check_parts(files, preambles)
    first = preambles[0]
    architecture = _text(first, "general.architecture")
    number = _whole(first, "general.file_type")
    return GgufHeader(
        name=_text(first, "general.name"),
        architecture=architecture,
        ftype=None if number is None else ftype_of(number),
        ftype_number=number,
        size_label=_text(first, "general.size_label"),
        quantization_version=_whole(first, "general.quantization_version"),
        tensor_types=_histogram(preambles),
        n_params=sum(part.n_params for part in preambles),
        tensor_bytes=sum(part.tensor_bytes for part in preambles),
        chat_template_sha256=first.chat_template_sha256,
        context_length=_whole(first, f"{architecture}.context_length"),
        n_vocab=first.lengths.get("tokenizer.ggml.tokens")
        or _whole(first, f"{architecture}.vocab_size"),
        parts=len(files),
    )


def _check_parts(files: tuple[Path, ...], preambles: list[Preamble]) -> None:
    """Whether the headers agree with the names about what is split into what."""
    for index, (file, part) in enumerate(zip(files, preambles, strict=True)):
        count = _whole(part, "split.count") or 1
        if count != len(files):
            raise WeightsError(
                f"{file}: its header says {count} parts, its name says {len(files)}; "
                "parts are named NAME-00001-of-00003.gguf"
            )
        number = _whole(part, "split.no") or 0
        if number != index:
            raise WeightsError(
                f"{file}: its header says part {number + 1}, its name says part {index + 1}"
            )
    expected = _whole(preambles[0], "split.tensors.count")
    found = sum(part.n_tensors for part in preambles)
    if len(files) > 1 and expected is not None and expected != found:
        raise WeightsError(f"{files[0]}: expected {expected} tensors in all parts, found {found}")


def _histogram(preambles: list[Preamble]) -> dict[str, int]:
    from gguf import GGMLQuantizationType

    names: dict[int, str] = {int(kind): str(kind.name) for kind in GGMLQuantizationType}
    counts: dict[str, int] = {}
    for part in preambles:
        for kind, count in part.tensor_types.items():
            name = names.get(kind, f"TYPE_{kind}")
            counts[name] = counts.get(name, 0) + count
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _text(preamble: Preamble, key: str) -> str | None:
    value: Any = preamble.values.get(key)
    return value if isinstance(value, str) else None


def _whole(preamble: Preamble, key: str) -> int | None:
    value: Any = preamble.values.get(key)
    return value if type(value) is int else None
