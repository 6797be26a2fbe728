"""`jevexp identify FILE|URL`: what a weight file or a server is, and a model option for it."""

import argparse
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from jevexp.backends.protocol import make_backend
from jevexp.cli import conf_dir
from jevexp.cli.compose import compose_settings
from jevexp.cli.console import make_console
from jevexp.cli.identity_view import observed_table
from jevexp.errors import InputError
from jevexp.identity import Observed, model_config, observe
from jevexp.untrusted.writing import Folder, write_durably

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def main(arguments: Sequence[str]) -> int:
    """Print what is observed, and the option of the model group that claims it.

    Raises:
        InputError: nothing can be observed there, or the option exists already.
    """
    given = _parser().parse_args(arguments)
    option = _option(given.write, given.config_dir) if given.write else None
    console = make_console()
    is_url = re.match(r"https?://", given.target)
    if is_url:
        seen = _observe_server(given)
    else:
        seen = observe({}, weights=Path(given.target), show=make_console(stderr=True))
    console.print(observed_table(seen))
    for note in seen.notes:
        console.print(Text(f"note: {note}"))
    text = model_config(seen, given.write or _default_name(seen))
    if option is None:
        console.print(*map(Text, text.split("\n")), sep="\n")
        return 0
    _write(option, text)
    console.print(Text(f"written: {option}"))
    console.print(Text(_next(option, given, is_url is not None)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jevexp identify",
        description="Print what a GGUF file or a llama.cpp server is, and a conf/model file "
        "that claims it.",
    )
    parser.add_argument("target", metavar="FILE.gguf|URL")
    parser.add_argument("--write", metavar="NAME", help="write it as the option model=NAME")
    parser.add_argument(
        "--config-dir",
        type=Path,
        metavar="DIR",
        help="the configuration folder to write into (default: the checkout's conf, else ./conf)",
    )
    parser.add_argument(
        "--key-env", metavar="VARIABLE", help="environment variable with the server's API key"
    )
    parser.add_argument(
        "--allow-http", action="store_true", help="accept plain http to another machine"
    )
    return parser


def _option(name: str, config_dir: Path | None) -> Path:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"--write {name}: a name begins with a letter or digit and holds letters, digits, "
            "dots, dashes and underscores, 64 at most"
        )
    path = (config_dir or _own_folder()) / "model" / f"{name}.yaml"
    if path.exists():
        raise InputError(f"--write {name}: {path} exists already; choose another name")
    return path


def _write(option: Path, text: str) -> None:
    try:
        with Folder.named(option.parent) as folder, folder.create(option.name) as file:
            write_durably(file, text.encode())
    except OSError as error:
        raise InputError(f"--write: {error.filename or option}: {error.strerror}") from error


def _own_folder() -> Path:
    """A checkout's tree; an installed package's is not for writing."""
    tree = conf_dir()
    return tree if (tree.parent / "pyproject.toml").is_file() else Path("conf")


def _observe_server(given: argparse.Namespace) -> Observed:
    settings = compose_settings(
        {
            "dataset": "demo",
            "backend": "llama_cpp",
            "model": "unclaimed",
            "model.alias": "unknown",
            "backend.server.base_url": given.target,
            "backend.server.key_env": given.key_env,
            "backend.server.allow_http": given.allow_http,
        }
    )
    backend = make_backend(settings.backend, settings.model, ())
    with tempfile.TemporaryDirectory() as folder:
        backend.open(Path(folder))
        try:
            return observe(backend.describe(), show=make_console(stderr=True))
        finally:
            backend.close()


def _default_name(seen: Observed) -> str:
    raw = str(seen.value("weights.file") or seen.value("alias") or "model")
    cleaned = re.sub(r"[^A-Za-z0-9]+", "_", raw.removesuffix(".gguf")).strip("_").lower()
    return cleaned[:64] or "model"


def _next(option: Path, given: argparse.Namespace, is_url: bool) -> str:
    """The command that checks the new option."""
    words = ["jevexp check dataset=demo backend=llama_cpp", f"model={given.write}"]
    if is_url:
        words.append(f"backend.server.base_url={given.target}")
        if given.key_env:
            words.append(f"backend.server.key_env={given.key_env}")
        if given.allow_http:
            words.append("backend.server.allow_http=true")
    folder = option.parent.parent
    if folder != conf_dir():
        words.append(f"--config-dir {folder}")
    return "check it: " + " ".join(words)
