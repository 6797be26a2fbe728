"""From a command line to validated settings, before Hydra makes a directory.

Hydra creates its output directory before it calls a job, so a mistake has to be found earlier:
everything is composed here first, with the same files and overrides, and each of Hydra's errors
becomes one line.
"""

import copy
import difflib
import re
import secrets
from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import (
    ConfigCompositionException,
    HydraException,
    MissingConfigException,
    OverrideParseException,
)
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict, read_write
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from jevexp.cli import conf_dir
from jevexp.cli.hydra_node import check_config_files, check_hydra_node, hydra_fields
from jevexp.core.json import dumps
from jevexp.errors import InputError
from jevexp.settings import Settings, unknown_field
from jevexp.untrusted.writing import make_folder, write_new

_NO_FIELD = re.compile(r"Could not (?:override|append to config\.) '?([\w.@/-]+)")
# Made once in the launching process: two starts in the same second never share a directory.
_LAUNCH_UID = secrets.token_hex(3)
# What a value on the command line may cause inside of Hydra, which does not check it first.
_PYTHON_ERRORS = (AssertionError, AttributeError, LookupError, OSError, RecursionError)
# The extra that brings each launcher, by the plugins' own options, which ours build on.
LAUNCHER_EXTRAS = {
    "joblib": "parallel",
    "submitit_local": "slurm",
    "submitit_slurm": "slurm",
    "ray": "ray",
}
_BASIC_LAUNCHER = "hydra._internal.core_plugins.basic_launcher.BasicLauncher"
_BASIC_SWEEPER = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"


@dataclass(frozen=True, slots=True)
class Composition:
    """What a command line asks for: one run, or a sweep of several below one directory.

    `fixed` says whether `settings` are those of all runs: some sweepers choose as they go.
    `launched` says whether a launcher starts processes for the runs. `composed` is the one run's
    configuration as Hydra has it, None for a sweep.
    """

    settings: tuple[Settings, ...]
    directory: Path
    is_sweep: bool
    fixed: bool = True
    launched: bool = False
    composed: DictConfig | None = None

    @property
    def overrides(self) -> tuple[str, ...]:
        """What was typed for the one run, apart from Hydra's own fields."""
        return tuple(self.composed.hydra.overrides.task) if self.composed else ()

    def write_hydra_files(self) -> None:
        """Write `.hydra`, as Hydra leaves it in the directory of every run of a sweep."""
        if self.composed is None:
            return
        configuration = copy.deepcopy(self.composed)
        with read_write(configuration), open_dict(configuration):
            hydra = configuration.pop("hydra")
            hydra.mode = RunMode.RUN
            hydra.runtime.output_dir = str(self.directory.resolve())
        files = {
            "config.yaml": configuration,
            "hydra.yaml": OmegaConf.create({"hydra": hydra}),
            "overrides.yaml": OmegaConf.create(list(self.overrides)),
        }
        folder = self.directory / ".hydra"
        make_folder(folder)
        for name, content in files.items():
            write_new(folder / name, OmegaConf.to_yaml(content).encode())


def register_resolvers() -> None:
    """Teach OmegaConf the parts of the directories' names that conf/hydra asks for."""
    OmegaConf.register_new_resolver("launch_uid", lambda: _LAUNCH_UID, replace=True)
    OmegaConf.register_new_resolver("concurrency_suffix", concurrency_suffix, replace=True)


def concurrency_suffix(concurrency: Any) -> str:
    """The end of a directory's name: empty, or the number of requests that run at once."""
    # The value is not validated yet; a wrong one gets its message later.
    return "" if concurrency == 1 else f"-c{concurrency}"


def compose_command(arguments: Namespace) -> Composition:
    """Compose and validate every run of a command line, as Hydra parsed it; nothing is written.

    Raises InputError: in one line, the first thing that is wrong.
    """
    check_flags(arguments)
    overrides = [search_path(arguments.config_dir), *arguments.overrides]
    with _hydra():
        fields = _checked_fields(arguments.overrides)
        shared = _without_sweeps(overrides)
        base = _compose(shared, fields)
        mode = base.hydra.mode
        if not arguments.multirun and (mode is None or mode.name != "MULTIRUN"):
            # A comma makes a list of choices, which only a sweep can run one by one.
            composed = base if shared == overrides else _compose(overrides, fields)
            directory = Path(composed.hydra.run.dir)
            return Composition((to_settings(composed),), directory, False, composed=composed)
        fixed = base.hydra.sweeper._target_ == _BASIC_SWEEPER
        # Other sweepers choose as they go: what their runs share is checked.
        runs = _expand(base, overrides) if fixed else [shared]
        settings = tuple(
            to_settings(_compose(run, fields, number)) for number, run in enumerate(runs)
        )
        launched = base.hydra.launcher._target_ != _BASIC_LAUNCHER
        return Composition(settings, Path(base.hydra.sweep.dir), True, fixed, launched)


def compose_directory(settings: Settings, overrides: Sequence[str], *, sweep: bool = False) -> Path:
    """Where a run with these settings goes, or a sweep; `overrides` are of Hydra's own node.

    Raises InputError: an override is not possible.
    """
    names = {
        "outputs": settings.outputs,
        "dataset.name": settings.dataset.name,
        "model.name": settings.model.name,
        "backend.name": settings.backend.name,
    }
    named = [f"{name}={quoted(value)}" for name, value in names.items()]
    named.append(f"runner.concurrency={settings.runner.concurrency}")
    with _hydra():
        fields = _checked_fields(overrides)
        composed = _compose([search_path(None), *named, *overrides], fields)
        return Path(composed.hydra.sweep.dir if sweep else composed.hydra.run.dir)


def check_composes(arguments: Namespace) -> None:
    """Compose what a command line names, so that a mistake in it is told in one line.

    Raises InputError: it cannot be composed.
    """
    register_resolvers()
    if arguments.shell_completion:
        return
    overrides = [search_path(arguments.config_dir), *arguments.overrides]
    with _hydra():
        _compose(_without_sweeps(overrides), _checked_fields(arguments.overrides))


def check_flags(arguments: Namespace) -> None:
    """Refuse Hydra's flags that take another configuration than the one that is checked.

    Raises InputError: one is given, or two of those that exclude each other.
    """
    modes = ("run", "multirun", "cfg", "info", "shell_completion")
    flags = [f"--{mode.replace('_', '-')}" for mode in modes if getattr(arguments, mode)]
    if len(flags) > 1:
        raise InputError(
            f"{' and '.join(flags)}: give one of them; jevexp plan -m shows the runs of a sweep"
        )
    if arguments.resolve and arguments.cfg == "hydra":
        # Hydra's own part names fields of the rest.
        raise InputError("--resolve: --cfg hydra cannot be resolved alone; write --cfg all")
    if arguments.config_path is not None:
        raise InputError("--config-path: jevexp has its own; add a folder with --config-dir")
    if arguments.config_name not in (None, "config"):
        raise InputError("--config-name: jevexp has its own; write an option of experiment")
    if arguments.experimental_rerun is not None:
        # A pickle, which runs what it likes when it is read.
        raise InputError("--experimental-rerun: is refused; resume=RUN goes on with a run")


def search_path(config_dir: str | None) -> str:
    """The override for the one folder that adds options: the only search path there is.

    Raises InputError: there is no such folder.
    """
    if config_dir is None:
        return "hydra.searchpath=[]"
    path = Path(config_dir).resolve()
    if not path.is_dir():
        raise InputError(f"--config-dir {config_dir}: no such folder")
    check_config_files(path)
    return f"hydra.searchpath=[{quoted(f'file://{path}')}]"


def compose_settings(fields: dict[str, str | bool | None]) -> Settings:
    """Settings from groups and fields given by a verb instead of a command line.

    Raises InputError: a value is not possible there.
    """
    overrides = [
        f"{name}={quoted(value) if isinstance(value, str) else dumps(value)}"
        for name, value in fields.items()
    ]
    with _hydra():
        return to_settings(compose("config", overrides))


def compose_group(group: str, option: str) -> dict[str, Any]:
    """The fields of one option of a group; raises InputError: there is no such option."""
    with _hydra():
        fields: dict[str, Any] = _resolve(compose("config", [f"{group}={option}"]), group)
        return fields


def parse_overrides(overrides: Sequence[str]) -> list[Override]:
    """The overrides of a command line, taken apart; raises InputError: one is not an override."""
    with _hydra():
        return _parse(overrides)


def to_settings(composed: DictConfig) -> Settings:
    """The composed configuration without Hydra's own node, validated."""
    names = [str(key) for key in composed if key != "hydra"]
    return Settings.of({name: _resolve(composed, name) for name in names})


def _resolve(composed: DictConfig, key: str) -> Any:
    try:
        value = composed[key]
        if OmegaConf.is_config(value):
            return OmegaConf.to_container(value, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        field = error.full_key or key
        raise InputError(f"{field}: missing; set {field}=VALUE") from error
    return value


def _checked_fields(overrides: Sequence[str]) -> set[str]:
    return hydra_fields(_parse(overrides))


def _compose(overrides: Sequence[str], fields: Collection[str], number: int = 0) -> DictConfig:
    """Compose with Hydra's node, and check that node; the search path is the first override."""
    # A sweeper's parameters may have added some.
    _checked_fields(overrides[1:])
    try:
        composed = compose("config", list(overrides), return_hydra_config=True)
    except ConfigCompositionException as error:
        if field := _NO_FIELD.search(str(error)):
            raise InputError(_refused_override(field[1], str(error), overrides)) from error
        raise
    composed.hydra.job.num = number
    composed.hydra.job.id = str(number)
    check_hydra_node(composed, _own_node(overrides[0]), overrides, fields)
    return composed


@cache
def _own_node(search_path: str) -> Mapping[str, Any]:
    """Hydra's node as jevexp's own configuration has it, unresolved."""
    own: Any = compose("config", [search_path], return_hydra_config=True)
    node: Any = OmegaConf.to_container(own.hydra, resolve=False)
    fields: dict[str, Any] = node
    return fields


def _without_sweeps(overrides: Sequence[str]) -> list[str]:
    """The overrides that all runs of a sweep share."""
    return [
        override.input_line or ""
        for override in _parse(overrides)
        if not override.is_sweep_override()
    ]


def _expand(base: DictConfig, overrides: Sequence[str]) -> list[list[str]]:
    """The overrides of each run of a sweep with Hydra's basic sweeper."""
    params = [f"{key}={value}" for key, value in (base.hydra.sweeper.params or {}).items()]
    parsed = _parse([overrides[0], *params, *overrides[1:]])
    return [run for batch in BasicSweeper.split_arguments(parsed, None) for run in batch]


def _parse(overrides: Sequence[str]) -> list[Override]:
    loader = GlobalHydra.instance().config_loader()
    return OverridesParser.create(config_loader=loader).parse_overrides(list(overrides))


def quoted(value: str) -> str:
    """`value`, as it is, as a quoted string of Hydra's override grammar.

    What stands in ${...} may be from somebody else's run, and is looked up nowhere.
    """
    # Each run of backslashes is looked at once, however long it is.
    literal = re.sub(r"(?<!\\)(\\*)\$\{", r"\1\1\\${", value)
    escaped = re.sub(r"(?<!\\)(\\*)'", r"\1\1\\'", literal)
    last = len(escaped) - len(escaped.rstrip("\\"))
    return f"'{escaped}{escaped[-last:] if last else ''}'"


@contextmanager
def _hydra() -> Iterator[None]:
    """Hydra with jevexp's configuration; raises InputError."""
    register_resolvers()
    try:
        with initialize_config_dir(str(conf_dir()), job_name="jevexp", version_base="1.3"):
            yield
    except (HydraException, OmegaConfBaseException, YAMLError) as error:
        raise InputError(_one_line(error)) from error
    except (*_PYTHON_ERRORS, TypeError, ValueError) as error:
        # Names that no file can have, brackets without end, a list where a name belongs.
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be composed: {' '.join(str(reason).split())[:200]}") from error


def _one_line(error: Exception) -> str:
    text = str(error)
    if isinstance(error, MissingConfigException):
        return _missing_option(error)
    if isinstance(error, OverrideParseException):
        reason = error.message.splitlines()[0]
        return (
            f"{error.override}: not an override: {reason}; write GROUP=OPTION or FIELD=VALUE, "
            "with quotes around special characters"
        )
    if isinstance(error, YAMLError):
        return f"not YAML: {' '.join(text.split())}"
    if field := _NO_FIELD.search(text):
        return _refused_override(field[1], text)
    if match := re.search(r"Ambiguous value for argument '(.+?)'", text):
        return f"{match[1]}: several values; sweep over them with -m, or write a list as [a,b]"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return ": ".join(lines[:2]) or type(error).__name__


def _refused_override(field: str, text: str, overrides: Sequence[str] = ()) -> str:
    if "multiple values" in text:
        return f"{field}: given twice"
    if re.match(r"hydra\b", field):
        return f"{field}: Hydra has no such field; see jevexp --cfg hydra"
    return unknown_field(field.replace("/", "."), Settings, values=_chosen(overrides))


def _chosen(overrides: Sequence[str]) -> Any:
    """What the groups among the overrides make of the configuration; null where that is unknown."""
    groups = [o.input_line or "" for o in _parse(overrides) if "." not in o.key_or_group]
    try:
        composed = compose("config", [*overrides[:1], *groups])
    except (HydraException, OmegaConfBaseException):
        return None
    return OmegaConf.to_container(composed, resolve=False)


def _missing_option(error: MissingConfigException) -> str:
    group, _, option = (error.missing_cfg_file or "").rpartition("/")
    if not group:
        return f"{option}: no such configuration; see jevexp --help"
    if group == "hydra/launcher" and (extra := LAUNCHER_EXTRAS.get(option)):
        return f"hydra/launcher: {option} is not installed here; pip install 'jevexp[{extra}]'"
    options = sorted(error.options or ())
    near = difflib.get_close_matches(option, options, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{group}={option}: no such option; {hint}choose one of: {', '.join(options)}"
