"""A running llama.cpp server: which one is asked, whether it is ready, what it says of itself."""

import hashlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from io import FileIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jevexp.backends.transport import Failure, Transport
from jevexp.errors import InputError
from jevexp.settings import LlamaServer, ModelIdentity
from jevexp.store.cache import cache_folder
from jevexp.untrusted.files import opened
from jevexp.untrusted.locks import locked
from jevexp.untrusted.writing import Folder, write_all

DEFAULT_URL = "http://127.0.0.1:8080"
_POLL_S = 0.2
_MOST_NAMES = 20
_MODEL_FACTS = ("ftype", "n_params", "size", "n_vocab", "n_ctx", "n_ctx_train", "n_embd")


def weights_to_serve(server: LlamaServer, model: ModelIdentity) -> Path | None:
    """The file to start a server for, or None where a running server is to be used.

    Raises:
        InputError: the configuration names weights that are not on this machine.
    """
    if server.base_url is not None:
        return None
    if server.gguf is not None:
        return Path(server.gguf).expanduser()
    return find_weights(model)


def wait_until_ready(
    transport: Transport, url: str, server: LlamaServer
) -> list[Mapping[str, Any]]:
    """Wait while the server loads its model; returns the entries of its `/v1/models`.

    Raises:
        InputError: not reachable, not allowed, no llama.cpp server, or loading took too long.
    """
    deadline = time.monotonic() + server.start_timeout_s
    while True:
        try:
            _check_health(transport)
            models = transport.get("/v1/models").body
        except Failure as failure:
            if failure.status != 503:
                raise InputError(_unusable(failure, url, server)) from failure
            if time.monotonic() > deadline:
                raise InputError(
                    f"backend.server.start_timeout_s: {url} is still loading its model after "
                    f"{server.start_timeout_s:g} s; wait for it, or raise the limit"
                ) from failure
            time.sleep(_POLL_S)
            continue
        listed = listed_models(models)
        if not listed:
            raise InputError(
                f"backend.server.base_url: {url} lists no model at /v1/models; start llama-server "
                f"there"
            )
        return listed


def choose(listed: Sequence[Mapping[str, Any]], alias: str, url: str) -> Mapping[str, Any]:
    """The entry that will answer: a server's only one, or at a router the one that is asked for.

    Raises:
        InputError: a router has no model of that name.
    """
    if len(listed) == 1:
        return listed[0]
    for entry in listed:
        if entry["id"] == alias:
            return entry
    names = sorted(entry["id"] for entry in listed)
    raise InputError(
        f"model.alias: {url} serves no {alias!r}; choose one of: {', '.join(names[:_MOST_NAMES])}"
        f"{', …' if len(names) > _MOST_NAMES else ''}"
    )


def _check_health(transport: Transport) -> None:
    try:
        transport.get("/health")
    except Failure as failure:
        # Gateways hide it. Whether a model answers is seen at /v1/models.
        if failure.status != 404:
            raise


def _unusable(failure: Failure, url: str, server: LlamaServer) -> str:
    if failure.status in (401, 403):
        if server.key_env is None:
            todo = "set backend.server.key_env to the environment variable that holds its API key"
        else:
            todo = f"check the API key in the environment variable {server.key_env}"
        return f"backend.server.key_env: {url} wants an API key (HTTP {failure.status}); {todo}"
    reason = {
        "connection_failed": "no server answers there",
        "timeout": "it does not answer in time",
        "http_error": f"HTTP {failure.status}",
    }.get(failure.code, "it does not answer like llama-server")
    if server.base_url is None:
        return (
            f"backend.server: model.weights names no file on this machine, and {url} is not "
            f"usable: {reason}; start llama-server there, or set backend.server.gguf=FILE"
        )
    return (
        f"backend.server.base_url: {url} is not usable: {reason}; start llama-server there, or "
        f"set backend.server.base_url=URL"
    )


def facts(
    transport: Transport, model: Mapping[str, Any], *, routed: str | None = None
) -> dict[str, Any]:
    """The session's facts from `/v1/models`, which is given, and `/props`, which is asked for.

    Builds differ in what they say: what is missing or makes no sense is null.

    Args:
        transport: the server.
        model: the entry of the model in the server's `/v1/models`.
        routed: the model's name at a router, which keeps facts by model.
    """
    meta = _object(model.get("meta"))
    try:
        props = transport.get(f"/props?model={quote(routed)}" if routed else "/props").body
    except Failure:
        props = {}
    settings = _object(props.get("default_generation_settings"))
    template = _text(props.get("chat_template"))
    found: dict[str, Any] = {name: _scalar(meta.get(name)) for name in _MODEL_FACTS}
    return found | {
        "build_info": _text(props.get("build_info")),
        "model": _text(model.get("id")),
        "model_alias": _text(props.get("model_alias")),
        "model_path": _text(props.get("model_path")),
        "ftype": _text(found["ftype"]) or _text(props.get("model_ftype")),
        # The context of one slot, which is what a prompt has.
        "n_ctx": _number(settings.get("n_ctx")) or _number(found["n_ctx"]),
        "total_slots": _number(props.get("total_slots")),
        "chat_template_sha256": (
            hashlib.sha256(template.encode()).hexdigest() if template is not None else None
        ),
        "modalities": _object(props.get("modalities")) or None,
    }


def listed_models(models: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The entries of a `/v1/models` answer that name a model."""
    data = models.get("data")
    entries = map(_object, data if isinstance(data, list) else [])
    return [entry for entry in entries if _text(entry.get("id"))]


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> int | None:
    return value if type(value) is int else None


def _scalar(value: Any) -> str | int | None:
    return _text(value) if isinstance(value, str) else _number(value)


_CHUNK_BYTES = 1 << 20


def find_weights(model: ModelIdentity) -> Path | None:
    """The file with the model's weights, or None where the configuration names none.

    `model.weights.path` comes first. A package ships the file whole, or as `FILE.part00`,
    `FILE.part01` and so on in packages that it requires; the parts are put together once, in the
    cache, and only if their SHA-256 is the one in `model.weights.sha256`.

    Raises:
        InputError: the path does not exist, the package is not installed or ships no such file.
    """
    weights = model.weights
    if weights.path is not None:
        path = Path(weights.path).expanduser()
        if not path.is_file():
            raise InputError(f"model.weights.path: no such file: {path}; give the GGUF file's path")
        return path
    if weights.package is None:
        return None
    if weights.file is None or Path(weights.file).name != weights.file:
        raise InputError(
            f"model.weights.file: expected the name of a file in {weights.package.name}, "
            f"found {weights.file!r}"
        )
    try:
        shipped = list(_shipped(weights.package.name))
    except metadata.PackageNotFoundError as error:
        raise InputError(
            f"model.weights.package: {error.name} is not installed; {weights.package.install}"
        ) from error
    whole = [path for path in shipped if path.name == weights.file]
    if whole:
        return whole[0]
    part = re.compile(re.escape(weights.file) + r"\.part\d+")
    parts = sorted((path for path in shipped if part.fullmatch(path.name)), key=lambda p: p.name)
    if not parts:
        raise InputError(
            f"model.weights.file: {weights.package.name} ships no {weights.file}; "
            f"{weights.package.install}"
        )
    if weights.sha256 is None:
        raise InputError("model.weights.sha256: missing; weights in parts need it to be checked")
    return _assembled(parts, weights.file, weights.sha256)


def _shipped(distribution: str) -> Iterator[Path]:
    """Every file of the installed distribution, then of those whose name extends its own."""
    for file in metadata.files(distribution) or ():
        yield Path(str(file.locate()))
    for requirement in metadata.requires(distribution) or ():
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        if name and name.group().startswith(f"{distribution}-"):
            yield from _shipped(name.group())


def _assembled(parts: list[Path], name: str, sha256: str) -> Path:
    """The parts as one file, written beside its final place so that a half never looks whole."""
    target = cache_folder() / "weights" / sha256 / name
    if target.is_file():
        return target
    try:
        with locked(target.with_name(f"{name}.lock")):
            if not target.is_file():
                with (
                    Folder.named(target.parent) as folder,
                    folder.replacing(name, f"{name}.partial") as whole,
                ):
                    _concatenate(parts, whole, sha256)
    except OSError as error:
        raise InputError(
            f"{error.filename or target}: cannot use the cache: {error.strerror or error}; the "
            "environment variable JEVEXP_CACHE moves it"
        ) from error
    return target


def _concatenate(parts: list[Path], whole: FileIO, sha256: str) -> None:
    digest = hashlib.sha256()
    for part in parts:
        with opened(part) as piece:
            while chunk := piece.read(_CHUNK_BYTES):
                digest.update(chunk)
                write_all(whole, chunk)
    if digest.hexdigest() != sha256:
        raise InputError(
            f"model.weights.sha256: expected {sha256}, found {digest.hexdigest()} in {len(parts)} "
            "parts; reinstall the package"
        )
