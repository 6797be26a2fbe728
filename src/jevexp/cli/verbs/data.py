"""`jevexp data pull|list|verify`: the pinned task files in the cache."""

import difflib
from collections.abc import Sequence
from pathlib import Path

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from jevexp.cli import conf_dir
from jevexp.cli.console import make_console, make_parser, make_table
from jevexp.datasets import FileState, cached_path, file_state, pull
from jevexp.errors import InputError
from jevexp.settings import Dataset

_STYLE = {FileState.DAMAGED: "red", FileState.MISSING: "dim", FileState.CACHED: "green"}


def main(argv: Sequence[str]) -> int:
    """Run the verb and return its exit status.

    Raises InputError: there is no such dataset, or a file cannot be had.
    """
    parser = make_parser(
        "data",
        "Download the pinned datasets, list them, verify what is cached. "
        "The cache is $JEVEXP_CACHE, else in your user's cache folder.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="pull|list|verify")
    for verb, text in (
        ("pull", "download what the cache lacks"),
        ("list", "show the pinned datasets and whether they are cached"),
        ("verify", "hash the cached files again; status 1 where one is wrong or missing"),
    ):
        verb_parser = verbs.add_parser(verb, help=text, description=text.capitalize() + ".")
        if verb != "list":
            verb_parser.add_argument(
                "names", nargs="*", metavar="NAME", help="default: all of them"
            )
    arguments = parser.parse_args(argv)
    datasets = pinned_datasets(conf_dir() / "dataset")
    if arguments.verb == "list":
        return _list(datasets)
    for name in arguments.names:
        if name not in datasets:
            near = difflib.get_close_matches(name, datasets, n=1, cutoff=0.6)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(datasets)}"
            raise InputError(f"{name}: no such pinned dataset; {hint}")
    chosen = [datasets[name] for name in arguments.names or datasets]
    return _pull(chosen) if arguments.verb == "pull" else _verify(chosen)


def pinned_datasets(folder: Path) -> dict[str, Dataset]:
    """The options of the dataset group that are pinned, by option name.

    Raises InputError: an option is not YAML, or not a dataset.
    """
    datasets = {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            fields = OmegaConf.to_container(OmegaConf.load(path), resolve=True)
            if isinstance(fields, dict) and fields.get("source") == "pinned":
                datasets[path.stem] = Dataset.of(
                    {str(name): value for name, value in fields.items()}, at="dataset"
                )
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        except (YAMLError, OmegaConfBaseException, ValueError, OSError) as error:
            raise InputError(f"{path}: {' '.join(str(error).split())}") from error
    return datasets


def _pull(datasets: Sequence[Dataset]) -> int:
    paths = [path for dataset in datasets for path in pull(dataset, show=make_console(stderr=True))]
    for path in dict.fromkeys(paths):
        make_console().print(str(path), markup=False, highlight=False)
    return 0


def _verify(datasets: Sequence[Dataset]) -> int:
    pins = {pin.sha256: pin for dataset in datasets for pin in dataset.files}
    states = {sha256: file_state(pin) for sha256, pin in pins.items()}
    for sha256, state in states.items():
        line = f"{state:<8}{cached_path(pins[sha256])}"
        make_console().print(line, markup=False, highlight=False)
    return 0 if all(state is FileState.CACHED for state in states.values()) else 1


def _list(datasets: dict[str, Dataset]) -> int:
    table = make_table("dataset", ">tasks", ">bytes", "cache", "sha256")
    for name, dataset in datasets.items():
        pins = dataset.files
        states = {file_state(pin) for pin in pins}
        # The worst of the files' states.
        state = next((state for state in _STYLE if state in states), FileState.CACHED)
        table.add_row(
            name,
            str(sum(pin.tasks for pin in pins)),
            f"{sum(pin.bytes for pin in pins):,}",
            f"[{_STYLE[state]}]{state}[/]",
            pins[0].sha256[:12] if len(pins) == 1 else f"{len(pins)} files",
        )
    make_console().print(table)
    return 0
