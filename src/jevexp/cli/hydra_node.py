"""What somebody else's configuration may hold: files of bounded size, and of Hydra's node little.

A configuration may come from somebody else. Of jevexp's fields only few name something that runs;
Hydra's own node could import packages, run callbacks, write elsewhere and change the environment.
So everything in it has to be as jevexp's own configuration has it, but for the fields named here.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf
from yaml import AliasEvent, YAMLError, parse  # type: ignore[import-untyped]

from jevexp.cli import conf_dir
from jevexp.errors import InputError
from jevexp.untrusted.files import TooLong, read_document

# A launcher's and a sweeper's fields below them are those of that plugin.
_DIRECTORIES = ("run.dir", "sweep.dir")
_SUBDIRECTORY = "sweep.subdir"
_PLUGINS = ("launcher", "sweeper")
_NAMES = ("job.name", "job.config.override_dirname")
_SETTABLE = (*_DIRECTORIES, _SUBDIRECTORY, *_PLUGINS, "mode", "verbose", *_NAMES)
# What Hydra itself writes while it composes, whatever stood there.
_WRITTEN_BY_HYDRA = ("runtime", "job.override_dirname", "job.id", "job.num", "job.config_name")
# Where launchers put files: submitit, joblib, Ray.
_LAUNCHER_FOLDERS = ("submitit_folder", "temp_folder", "_temp_dir")
_REASONS = {
    "callbacks": "would run code that a configuration names; remove it",
    "hydra_logging": "jevexp keeps a log of its own; remove it",
    "job_logging": "jevexp keeps a log of its own; remove it",
    "searchpath": "would take configuration from elsewhere; give a folder with --config-dir",
    "job.env_set": "would change the environment; set variables before the command",
    "job.env_copy": "would copy the environment into files; set variables before the command",
}
# Each alias may double what a file comes to; so many make some ten thousand fields at most.
_MOST_ALIASES = 16
_MOST_CONFIG_BYTES = 1 << 20


def check_config_files(folder: Path) -> None:
    """Refuse options in a folder of configuration that would fill the memory when composed.

    Raises InputError: naming the file, before anything is composed.
    """
    # Hydra reads nothing else in the folder.
    groups = [group.name for group in conf_dir().iterdir() if group.is_dir()]
    for path in sorted(path for group in groups for path in (folder / group).rglob("*.yaml")):
        try:
            text = read_document(path, most=_MOST_CONFIG_BYTES)
            aliases = sum(isinstance(event, AliasEvent) for event in parse(text))
        except TooLong as error:
            raise InputError(f"{path}: a configuration file is {error}") from error
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        except YAMLError:
            # Hydra says what is wrong with a file that is used.
            continue
        if aliases > _MOST_ALIASES:
            raise InputError(
                f"{path}: has {aliases} YAML aliases, of which each may repeat all before it; "
                f"write out what they stand for, or keep to {_MOST_ALIASES}"
            )


def hydra_fields(overrides: Sequence[Override]) -> set[str]:
    """The fields of Hydra's node that overrides set, without `hydra.` before them.

    Raises InputError: a field may not be set, or not to this. It is called before anything is
    composed, since composing would import a search path that names a package.
    """
    fields = set()
    for override in overrides:
        key = override.key_or_group.replace("/", ".")
        root, _, field = key.partition(".")
        if root != "hydra" or not field:
            continue
        _check_settable(field, override.key_or_group)
        if override.is_delete():
            raise InputError(f"{override.key_or_group}: cannot be removed")
        if override.is_sweep_override():
            raise InputError(f"{override.key_or_group}: one value for the whole sweep")
        fields.add(field)
    return fields


def check_hydra_node(
    composed: DictConfig,
    own: Mapping[str, Any],
    overrides: Sequence[str],
    typed_fields: Collection[str],
) -> None:
    """Check that Hydra's node differs from jevexp's own only where it may.

    Args:
        composed: a composed configuration with Hydra's node; its interpolations are resolved here.
        own: the node as jevexp's own configuration has it, unresolved.
        overrides: as they were handed to Hydra.
        typed_fields: those of Hydra's node that the command line itself names, without `hydra.`.

    Raises InputError: naming the field.
    """
    node: Any = composed.hydra
    unresolved: Any = OmegaConf.to_container(node, resolve=False)
    # A configuration file could list overrides, which each run of a sweep would take over.
    listed = unresolved["overrides"]
    if sorted([*listed["hydra"], *listed["task"]]) != sorted(overrides):
        raise InputError("hydra.overrides: belong on the command line; remove them from the file")
    fields, own_fields = _flat(unresolved), _flat(own)
    differing = [
        field
        for field in own_fields | fields
        if own_fields.get(field) != fields.get(field)
        and not _is_below(field, (*_WRITTEN_BY_HYDRA, "overrides"))
    ]
    for field in differing:
        _check_settable(field, f"hydra.{field}")
    for field in _DIRECTORIES:
        if field in differing:
            value = OmegaConf.select(node, field)
            _check_directory(f"hydra.{field}", value, anywhere=field in typed_fields)
    subdirectory, field = node.sweep.subdir, f"hydra.{_SUBDIRECTORY}"
    _check_directory(field, subdirectory, anywhere=True)
    # Whatever reads a sweep looks for its runs right below it.
    if Path(subdirectory).is_absolute() or len(Path(subdirectory).parts) != 1:
        raise InputError(
            f"{field}: {subdirectory!r} is not the name of a folder right inside the sweep"
        )
    names = [node.verbose] if isinstance(node.verbose, bool | str) else node.verbose
    is_list = OmegaConf.is_list(names) or isinstance(names, list)
    if not is_list or not all(isinstance(name, bool | str) for name in names):
        raise InputError("hydra.verbose: write true, false, or names of loggers as [a,b]")
    for plugin in _PLUGINS:
        _check_plugin(plugin, node, typed_fields)


def _flat(node: Any, prefix: str = "") -> dict[str, Any]:
    """The leaves of a node by their dotted names; an empty mapping is a leaf."""
    if not isinstance(node, Mapping) or not node:
        return {prefix: node}
    fields: dict[str, Any] = {}
    for key, value in node.items():
        fields |= _flat(value, f"{prefix}.{key}" if prefix else str(key))
    return fields


def _is_below(field: str, names: Collection[str]) -> bool:
    return any(field == name or field.startswith(f"{name}.") for name in names)


def _check_settable(field: str, typed: str) -> None:
    if _is_below(field, _SETTABLE):
        return
    for name, reason in _REASONS.items():
        if _is_below(field, (name,)):
            raise InputError(f"hydra.{name}: {reason}")
    if any(name.startswith(f"{field}.") for name in _SETTABLE):
        raise InputError(f"{typed}: set its fields one by one")
    raise InputError(
        f"{typed}: cannot be set; of Hydra's own fields only {', '.join(_SETTABLE)} can"
    )


def _check_directory(field: str, value: Any, *, anywhere: bool) -> None:
    """Refuse a resolved directory that leads elsewhere, or is absolute where it must not be."""
    # An empty name is the folder itself, which exists; check_paths says so.
    if not isinstance(value, str) or not value.isprintable():
        raise InputError(f"{field}: {value!r} is not a directory's name")
    path = Path(value)
    if ".." in path.parts:
        raise InputError(f"{field}: {value} leads upwards; write the directory without '..'")
    if path.is_absolute() and not anywhere:
        raise InputError(
            f"{field}: {value} in a configuration file is absolute; "
            f"give it on the command line: {field}={value}"
        )


def _check_plugin(plugin: str, node: Any, typed_fields: Collection[str]) -> None:
    """Refuse what no installed plugin of Hydra's registers, and folders elsewhere."""
    known = set(_targets(ConfigStore.instance().repo["hydra"]))
    fields = _flat(OmegaConf.to_container(node[plugin], resolve=True), plugin)
    if f"{plugin}._target_" not in fields:
        raise InputError(f"hydra.{plugin}: is not a plugin; choose one with hydra/{plugin}=NAME")
    for field, value in fields.items():
        *parents, name = field.split(".")
        if name == "_target_" and value not in known:
            raise InputError(
                f"hydra.{field}: {value} is none of the installed plugins; "
                f"choose one with hydra/{plugin}=NAME"
            )
        # The values of these are overrides of each run.
        if "hydra" in {part.partition("/")[0] for part in (*parents, name)}:
            raise InputError(f"hydra.{field}: Hydra's own node cannot be swept over")
        if name in _LAUNCHER_FOLDERS and value is not None:
            inside = isinstance(value, str) and Path(value).is_relative_to(node.sweep.dir)
            _check_directory(f"hydra.{field}", value, anywhere=inside or field in typed_fields)


def _targets(node: Any) -> Iterator[Any]:
    """Every `_target_` below a node of Hydra's store of registered configurations."""
    if isinstance(node, Mapping):
        for value in node.values():
            yield from _targets(value)
    elif OmegaConf.is_dict(getattr(node, "node", None)):
        fields = _flat(OmegaConf.to_container(node.node, resolve=False))
        yield from (value for name, value in fields.items() if name.endswith("_target_"))
