"""What a model's configuration claims, field by field."""

from collections.abc import Iterator
from typing import Any

from jevexp.settings import ModelIdentity, WeightFile

_FILE_FIELDS = ("file", "path", "sha256", "bytes", "repository", "revision")


def declared_fields(model: ModelIdentity) -> dict[str, Any]:
    """Every claim by its dotted name; what is not claimed is absent.

    Where to get a file and notes to the reader are no claims: `weights.package` and
    `quantization.note` are left out.
    """
    return {name: value for name, value in _fields(model) if value is not None}


def _fields(model: ModelIdentity) -> Iterator[tuple[str, Any]]:
    yield "alias", model.alias
    yield from _file_fields("weights", model.weights)
    yield "quantization.label", model.quantization.label
    yield "quantization.ftype", model.quantization.ftype
    yield "quantization.tensor_types", model.quantization.tensor_types
    yield "chat_template.file", model.chat_template.file
    yield "chat_template.sha256", model.chat_template.sha256
    for name, file in sorted(model.files.items()):
        yield from _file_fields(f"files.{name}", file)
    yield "context", model.context
    yield "cache_type_k", model.cache_type_k
    yield "cache_type_v", model.cache_type_v


def _file_fields(prefix: str, file: WeightFile) -> Iterator[tuple[str, Any]]:
    for name in _FILE_FIELDS:
        yield f"{prefix}.{name}", getattr(file, name)
