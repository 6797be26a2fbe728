"""From a dataset's settings to checked tasks, wherever its files are."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from rich.console import Console

from jevexp.core.task import Task
from jevexp.datasets.pinned import FileState, difference, fetch, file_state, pinned_url
from jevexp.datasets.tasks import Tasks, hash_of, read_file
from jevexp.errors import InputError
from jevexp.settings import Dataset, PinnedFile
from jevexp.store.checksums import file_sha256
from jevexp.store.manifest import Manifest

# What a manifest keeps of a dataset's settings.
PIN_FIELDS = ("source", "title", "licence", "repository", "commit", "base_url")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFile:
    """One file that was read.

    `name` is its path in the repository, or as it was given; `url` is where a pinned file is
    published, null for a file that has no pin there; `sha256` and `bytes` are of what was read.
    """

    name: str
    url: str | None
    sha256: str
    bytes: int
    tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedDataset:
    """The tasks of a dataset, in order, and what proves which ones they are.

    `pin` is for the manifest: `PIN_FIELDS`, null where there is none.
    """

    name: str
    tasks: Tasks
    dataset_hash: str
    files: tuple[LoadedFile, ...]
    pin: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Source:
    """A file to read, its bytes already proven where it has a pin."""

    name: str
    path: Path
    url: str | None = None
    sha256: str | None = None
    tasks: int | None = None


def load_dataset(
    dataset: Dataset, *, show: Console | None = None, may_download: bool = True
) -> LoadedDataset:
    """Find, verify and read a dataset's files; pinned ones are downloaded once.

    What was loaded last is not read again while its files are untouched: a command line is checked
    before it runs, and the runs of a sweep mostly share their tasks.

    On a terminal `show` draws progress bars. `may_download` is false for a dataset that a run
    directory describes, which may be anybody's and name any address.

    Raises InputError: a file cannot be had, is not the pinned one, or holds a line that is no task.
    """
    if not may_download and dataset.source == "pinned" and not dataset.path:
        for pin in dataset.files:
            if file_state(pin) is not FileState.CACHED:
                raise InputError(
                    f"dataset.files: {pin.path} is not in the cache; `jevexp data pull` downloads "
                    "what jevexp knows, and a run with the dataset's own option what that names"
                )
    sources = _sources(dataset, show)
    key = (dataset, tuple(_version(source.path) for source in sources))
    if key not in _last:
        loaded = _load(dataset, sources)
        _last.clear()
        _last[key] = loaded
    return _last[key]


_last: dict[object, LoadedDataset] = {}


def _version(path: Path) -> tuple[int, ...] | None:
    """What changes when somebody writes to a file; None where reading it will say what is wrong."""
    with suppress(OSError):
        state = path.stat()
        return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns
    return None


def _load(dataset: Dataset, sources: Sequence[_Source]) -> LoadedDataset:
    lines: list[bytes] = []
    canonical: list[bytes] = []
    files: list[LoadedFile] = []
    places: dict[str, str] = {}
    for source in sources:
        # Pinned bytes are what they are; whoever writes a file wants to hear of a typing error.
        file = read_file(source.path, strict=dataset.source != "pinned", places=places)
        n_tasks = len(file.lines)
        # The file may be another one than a moment before.
        if source.sha256 not in (None, file.sha256):
            raise InputError(f"{source.path}: changed while it was read; start again")
        if source.tasks not in (None, n_tasks):
            raise InputError(f"{source.path}: expected {source.tasks} tasks, found {n_tasks}")
        lines += file.lines
        canonical += file.canonical
        files.append(
            LoadedFile(
                name=source.name,
                url=source.url,
                sha256=file.sha256,
                bytes=file.bytes,
                tasks=n_tasks,
            )
        )
    dataset_hash, expected = hash_of(canonical), dataset.dataset_hash
    if expected not in (None, dataset_hash):
        raise InputError(f"dataset.dataset_hash: expected {expected}, found {dataset_hash}")
    return LoadedDataset(
        name=dataset.name,
        tasks=Tasks(lines),
        dataset_hash=dataset_hash,
        files=tuple(files),
        pin={field: getattr(dataset, field) for field in PIN_FIELDS},
    )


def dataset_of(manifest: Manifest) -> LoadedDataset:
    """The dataset of a run, found again by its manifest; nothing is downloaded.

    Raises InputError: they are not here, or have changed since the run.
    """
    dataset = Dataset.of(manifest.config.resolved["dataset"], at="dataset")
    loaded = load_dataset(dataset, may_download=False)
    if loaded.dataset_hash != manifest.dataset.dataset_hash:
        raise InputError(
            f"dataset: the tasks have changed since the run: expected dataset_hash "
            f"{manifest.dataset.dataset_hash}, found {loaded.dataset_hash}"
        )
    return loaded


def planned_tasks(manifest: Manifest) -> Sequence[Task]:
    """The tasks that a run was put.

    Raises InputError: they are not here, or have changed since the run.
    """
    return dataset_of(manifest).tasks[: manifest.counts.requested]


def planned_tasks_or_none(manifest: Manifest) -> Sequence[Task] | None:
    """The tasks that a run was put; None where they cannot be had."""
    try:
        return planned_tasks(manifest)
    except InputError:
        return None


def pull(dataset: Dataset, *, show: Console | None = None) -> list[Path]:
    """The cached files of a pinned dataset, in order; what the cache lacks is downloaded.

    Raises InputError: a file cannot be had.
    """
    return [fetch(pin, pinned_url(dataset, pin), show=show) for pin in dataset.files]


def _sources(dataset: Dataset, show: Console | None) -> list[_Source]:
    path = Path(dataset.path or "").expanduser()
    if dataset.source == "local":
        if dataset.sha256 is not None:
            with _readable(path):
                sha256 = file_sha256(path, follow_links=True)
            if sha256 != dataset.sha256:
                raise InputError(
                    f"dataset.sha256: expected {dataset.sha256}, found {sha256} in {path}"
                )
        return [_Source(str(dataset.path), path, sha256=dataset.sha256)]
    if not dataset.files:
        raise InputError(f"dataset.files: {dataset.name} names no file")
    names = [PurePosixPath(pin.path).name for pin in dataset.files]
    if dataset.source == "shipped":
        if dataset.path:
            raise InputError(
                f"dataset.path: {dataset.name} ships with jevexp; use dataset=local for your own "
                "file"
            )
        paths = [Path(__file__).with_name(name) for name in names]
        _prove(paths, dataset.files, "install jevexp again")
    elif not dataset.path:
        paths = pull(dataset, show=show)
    elif len(names) > 1 and not path.is_dir():
        raise InputError(
            f"dataset.path: expected a folder with the {len(names)} files of {dataset.name}, "
            f"found {str(path)!r}"
        )
    else:
        paths = [path / name for name in names] if path.is_dir() else [path]
        _prove(paths, dataset.files, "leave dataset.path out to download it, or use dataset=local")
    address_known = dataset.base_url and dataset.repository and dataset.commit
    is_published = dataset.source == "pinned" and address_known
    return [
        _Source(
            pin.path,
            path,
            pinned_url(dataset, pin) if is_published else None,
            pin.sha256,
            pin.tasks,
        )
        for pin, path in zip(dataset.files, paths, strict=True)
    ]


def _prove(paths: Sequence[Path], pins: Sequence[PinnedFile], way_out: str) -> None:
    for path, pin in zip(paths, pins, strict=True):
        with _readable(path):
            if mismatch := difference(path, pin):
                raise InputError(f"{path}: not the pinned file: {mismatch}; {way_out}")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"dataset.path: cannot read {path}: {error.strerror or error}") from error
