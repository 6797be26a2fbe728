"""`jevexp identify FILE|URL`: what a weight file or a server is, and a model option for it."""

import re
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from jevexp.backends.protocol import make_backend
from jevexp.cli import conf_dir
from jevexp.cli.compose import compose_settings
from jevexp.cli.console import make_console, make_parser, make_table
from jevexp.core.identity import in_words
from jevexp.errors import InputError
from jevexp.identity import Observed, model_config, observe
from jevexp.untrusted.writing import Folder, write_durably

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def main(argv: Sequence[str]) -> int:
    """Print what is observed, and the option of the model group that claims it.

    Raises InputError: nothing can be observed there, or the option exists already.
    """
    parser = make_parser(
        "identify",
        "Print what a GGUF file or a llama.cpp server is, and a conf/model file that claims it.",
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
    arguments = parser.parse_args(argv)
    option = _option(arguments.write, arguments.config_dir) if arguments.write else None
    console = make_console()
    is_url = re.match(r"https?://", arguments.target) is not None
    if is_url:
        observed = _observe_server(arguments)
    else:
        weights = Path(arguments.target)
        observed = observe({}, weights=weights, show=make_console(stderr=True))
    table = make_table("field", "observed", "source")
    for name, values in observed.values.items():
        for value in values:
            table.add_row(Text(name), Text(in_words(value.value)), Text(value.source.value))
    console.print(table)
    for note in filter(None, (*observed.notes, observed.unknown)):
        console.print(Text(f"note: {note}"))
    # The option is named like the file, or like the model.
    name = str(observed.value("weights.file") or observed.value("alias") or "model")
    name = re.sub(r"[^A-Za-z0-9]+", "_", name.removesuffix(".gguf")).strip("_").lower()[:64]
    text = model_config(observed, arguments.write or name or "model")
    if option is None:
        console.print(*map(Text, text.split("\n")), sep="\n")
        return 0
    try:
        with Folder.named(option.parent) as folder, folder.create(option.name) as file:
            write_durably(file, text.encode())
    except OSError as error:
        raise InputError(f"--write: {error.filename or option}: {error.strerror}") from error
    console.print(Text(f"written: {option}"))
    console.print(Text(_next(option, arguments, is_url)))
    return 0


def _option(name: str, config_dir: Path | None) -> Path:
    if not _NAME.fullmatch(name):
        raise InputError(
            f"--write {name}: a name begins with a letter or digit and holds letters, digits, "
            "dots, dashes and underscores, 64 at most"
        )
    tree = conf_dir()
    # A checkout's tree is for writing; an installed package's is not.
    own = tree if (tree.parent / "pyproject.toml").is_file() else Path("conf")
    path = (config_dir or own) / "model" / f"{name}.yaml"
    if path.exists():
        raise InputError(f"--write {name}: {path} exists already; choose another name")
    return path


def _observe_server(arguments: Namespace) -> Observed:
    settings = compose_settings(
        {
            "dataset": "demo",
            "backend": "llama_cpp",
            "model": "unclaimed",
            "model.alias": "unknown",
            "backend.server.base_url": arguments.target,
            "backend.server.key_env": arguments.key_env,
            "backend.server.allow_http": arguments.allow_http,
        }
    )
    backend = make_backend(settings.backend, settings.model, ())
    with tempfile.TemporaryDirectory() as folder:
        backend.open(Path(folder))
        try:
            return observe(backend.describe(), show=make_console(stderr=True))
        finally:
            backend.close()


def _next(option: Path, arguments: Namespace, is_url: bool) -> str:
    """The command that checks the new option."""
    words = ["jevexp check dataset=demo backend=llama_cpp", f"model={arguments.write}"]
    if is_url:
        words.append(f"backend.server.base_url={arguments.target}")
        if arguments.key_env:
            words.append(f"backend.server.key_env={arguments.key_env}")
        if arguments.allow_http:
            words.append("backend.server.allow_http=true")
    folder = option.parent.parent
    if folder != conf_dir():
        words.append(f"--config-dir {folder}")
    return "check it: " + " ".join(words)
