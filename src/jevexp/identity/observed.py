"""What is observed about a model: by asking its server, and by reading its weights.

>>> seen = observe(backend.describe(), weights=Path("model.gguf"))
>>> seen.value("quantization.ftype")
'Q4_K_M'
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from jevexp.core.ftype import ftype_of
from jevexp.core.identity import ObservedValue, Source
from jevexp.untrusted.addresses import is_loopback
from jevexp.weights.digest import WeightsError, file_sha256
from jevexp.weights.gguf import GgufHeader, read_header

# Of `jevexp.settings.DecisionModel`, and of a header.
DECISION_FIELDS = ("type", "temperatures", "template_sha256", "settings")


@dataclass(frozen=True, slots=True)
class Observed:
    """By field, what each source says, the strongest first; a field that nobody names is absent.

    `notes` say why something could not be observed. `bytes_hashed` and `bytes_read` tell how much
    the hashes cover and how much of that was read now instead of remembered.
    """

    values: Mapping[str, tuple[ObservedValue, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    bytes_hashed: int = 0
    bytes_read: int = 0
    header: GgufHeader | None = None

    def value(self, name: str) -> Any:
        """What the strongest source says about a field; None where nobody does."""
        return next((observation.value for observation in self.values.get(name, ())), None)

    def certain(self, name: str) -> str | None:
        """What the strongest source says that does not only guess; None where all do."""
        values = self.values.get(name, ())
        return next((str(v.value) for v in values if v.source is not Source.SERVER_GUESS), None)

    @property
    def unknown(self) -> str | None:
        """What a decision model keeps to itself where its file is not read, in words, or None."""
        if self.header is not None or not self.value("decision"):
            return None
        return (
            "a decision model whose file is not here: its type, temperatures, template are unknown"
        )


def observe(
    description: Mapping[str, Any],
    *,
    weights: Path | None = None,
    files: Mapping[str, Path] | None = None,
    show: Console | None = None,
) -> Observed:
    """Collect everything that can be known before the first request.

    Args:
        description: the backend's `describe()`; empty for a file that nobody serves.
        weights: the file that is identified, or that a server was started with here; never one
            that merely has the model's name. None: the server's own `model_path`, where the
            server is on this machine and the file can be read.
        files: further files that the server was given, such as the projector, by name.
        show: draws a progress bar while a file is hashed, when it is a terminal.

    Raises WeightsError: `weights` or one of `files` cannot be read, or is not what it should be.
    """
    seen = _Collection(show)
    path = weights if weights is not None else _served_file(description, seen)
    if path is not None:
        try:
            seen.weights(path)
        except WeightsError as error:
            if weights is not None:
                raise
            seen.notes.append(f"the weights could not be read: {error}")
    for name, further in (files or {}).items():
        seen.file(f"files.{name}", further)
    seen.server(description)
    values = {name: tuple(observations) for name, observations in seen.values.items()}
    return Observed(values, tuple(seen.notes), seen.bytes_hashed, seen.bytes_read, seen.header)


class _Collection:
    """Values as they come in, the strongest source first."""

    def __init__(self, show: Console | None) -> None:
        self.notes: list[str] = []
        self.values: dict[str, list[ObservedValue]] = {}
        self.bytes_hashed = self.bytes_read = 0
        self.header: GgufHeader | None = None
        self._show = show

    def file(self, prefix: str, path: Path) -> None:
        digest = file_sha256(path, show=self._show)
        self.bytes_hashed += digest.bytes
        self.bytes_read += digest.bytes_read
        self._add(f"{prefix}.sha256", digest.sha256, Source.FILE_BYTES)
        self._add(f"{prefix}.bytes", digest.bytes, Source.FILE_BYTES)
        self._add(f"{prefix}.file", path.name, Source.FILE_PATH)
        self._add(f"{prefix}.path", str(path.absolute()), Source.FILE_PATH)

    def weights(self, path: Path) -> None:
        """The header first: what is no GGUF file is not worth hashing."""
        header = read_header(path)
        self.file("weights", path)
        self.header = header
        if header.ftype is not None:
            self._add("quantization.ftype", header.ftype.name, Source.FILE_HEADER)
        elif header.ftype_number is not None:
            self.notes.append(
                f"the header's file type {header.ftype_number} is unknown to the installed gguf "
                "library; a newer one may know it"
            )
        for name, attribute in _HEADER_FIELDS.items():
            self._add(name, getattr(header, attribute), Source.FILE_HEADER)
        self._add("decision", header.decision is not None, Source.FILE_HEADER)
        for name in DECISION_FIELDS if header.decision else ():
            self._add(f"decision.{name}", getattr(header.decision, name), Source.FILE_HEADER)

    def server(self, description: Mapping[str, Any]) -> None:
        """What a backend's description holds; what is missing or makes no sense is left out."""
        if not _of_llama_cpp(description):
            self._add("alias", _text(description.get("model")), Source.PROVIDER)
            return
        self._add("alias", _text(description.get("model")), Source.SERVER_MODELS)
        self._add("alias", _text(description.get("model_alias")), Source.SERVER_PROPS)
        if model_path := _text(description.get("model_path")):
            # The server may run on a system with the other kind of slash.
            name = model_path.replace("\\", "/").rpartition("/")[2]
            self._add("weights.file", name, Source.SERVER_PROPS)
            self._add("weights.path", model_path, Source.SERVER_PROPS)
        if spelling := _text(description.get("ftype")):
            if ftype := ftype_of(spelling):
                source = Source.SERVER_GUESS if ftype.guessed else Source.SERVER
                self._add("quantization.ftype", ftype.name, source)
            else:
                self.notes.append(f"the server's file type {spelling!r} is unknown here")
        for name, key, source in _SERVER_NUMBERS:
            number = description.get(key)
            if type(number) is int and number > 0:
                self._add(name, number, source)
        outputs = description.get("output_modalities")
        if isinstance(outputs, list):
            self._add("decision", "decisions" in outputs, Source.SERVER_MODELS)
        self._add("build", _text(description.get("build_info")), Source.SERVER_PROPS)
        # What the server renders is what counts, whatever the file holds.
        template = _text(description.get("chat_template_sha256"))
        self._add("chat_template.sha256", template, Source.SERVER_PROPS, first=True)
        if description.get("managed") is True:
            for name in ("cache_type_k", "cache_type_v"):
                self._add(name, _text(description.get(name)), Source.CONFIG)

    def _add(self, name: str, value: Any, source: Source, *, first: bool = False) -> None:
        if value is not None:
            values = self.values.setdefault(name, [])
            values.insert(0 if first else len(values), ObservedValue(value=value, source=source))


_SERVER_NUMBERS = (
    ("n_params", "n_params", Source.SERVER_MODELS),
    ("tensor_bytes", "size", Source.SERVER_MODELS),
    ("n_vocab", "n_vocab", Source.SERVER_MODELS),
    ("context_trained", "n_ctx_train", Source.SERVER_MODELS),
    ("n_embd", "n_embd", Source.SERVER_MODELS),
    ("context", "n_ctx", Source.SERVER),
    ("slots", "total_slots", Source.SERVER_PROPS),
)
_HEADER_FIELDS = {
    "quantization.tensor_types": "tensor_types",
    "chat_template.sha256": "chat_template_sha256",
    "header_name": "name",
    "architecture": "architecture",
    "size_label": "size_label",
    "quantization_version": "quantization_version",
    "n_params": "n_params",
    "tensor_bytes": "tensor_bytes",
    "n_vocab": "n_vocab",
    "context_trained": "context_length",
}


def _served_file(description: Mapping[str, Any], seen: _Collection) -> Path | None:
    """The file that a server on this machine says it serves; None, and a note why, else."""
    if not _of_llama_cpp(description):
        return None
    model_path = _text(description.get("model_path"))
    if model_path is None:
        reason = "the server names no file"
    elif not (
        description.get("managed") is True or is_loopback(_text(description.get("base_url")) or "")
    ):
        reason = "the server is on another machine"
    elif not Path(model_path).is_absolute():
        reason = f"the server's path {model_path!r} is relative to a folder that is not known here"
    else:
        return Path(model_path)
    seen.notes.append(f"the weights could not be read: {reason}")
    return None


def _of_llama_cpp(description: Mapping[str, Any]) -> bool:
    """Whether a llama.cpp server answers; other kinds of backends have its facts where one does."""
    return description.get("kind") == "llama_cpp" or description.get("served_by") == "llama.cpp"


def further_files(fields: Iterable[str]) -> list[str]:
    """The names of further files, such as the projector, among the names of fields."""
    hashes = [name for name in fields if name.startswith("files.") and name.endswith(".sha256")]
    return [name.removeprefix("files.").removesuffix(".sha256") for name in hashes]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
