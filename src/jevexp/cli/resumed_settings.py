"""The configuration of a resumed run: the earlier run's, with what the command line changes."""

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import Override, ValueType
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from jevexp.cli.compose import compose_group, parse_overrides, quoted
from jevexp.core.json import dumps
from jevexp.errors import InputError
from jevexp.settings import Settings
from jevexp.settings.resuming import FIELDS, Origin, field_of, origin_of, to_repeat
from jevexp.store.directory import MANIFEST
from jevexp.untrusted.console import is_printable

Config = Mapping[str, Any]

_NAMES = ("url", "uri", "factory")
_GROUPS = ("caps", "tracking")
# A text that needs no quotes in Hydra's grammar, unless that takes it for a number or the like.
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./:@-]*")
_WORD = re.compile("true|false|null|nan|inf", re.IGNORECASE)
# Longer than this, a message would be cut, and with it the command in it.
_MAX_COMMAND = 3000


@dataclass(frozen=True, slots=True)
class _Change:
    """One override: `values` are several where a sweep's runs have different ones."""

    name: str
    values: tuple[Any, ...]
    text: str

    def among(self, value: Any) -> bool:
        """Whether it repeats a value. JSON tells 1 and true apart."""
        return dumps(value, sort_keys=True) in [
            dumps(known, sort_keys=True) for known in self.values
        ]


def resumed_settings(
    path: Path, configs: Sequence[Config], overrides: Sequence[str]
) -> tuple[list[Settings], list[str]]:
    """The settings of resumed runs, and the overrides that are for Hydra's own node.

    Args:
        path: the run or sweep, as the person names it.
        configs: the resolved configuration of the earlier run, or those of a sweep's runs.
        overrides: what the command line repeats and changes. It repeats the different values of a
            sweep's runs as `FIELD=A,B`, and each run keeps its own.

    Raises InputError: an override would change what is measured, or a configuration names what only
    a person may name, and nobody repeated that.
    """
    hydra, changes = [], []
    for override in parse_overrides(overrides):
        if override.key_or_group.partition(".")[0] == "hydra":
            hydra.append(override.input_line or "")
        else:
            changes.append(_change(override))
    for change in changes:
        _check(change, configs)
    settings = []
    missing: set[str] = set()
    for config in configs:
        fields, repeated_fields = _changed(config, changes)
        settings.append(Settings.of(fields))
        missing |= {name for name, _ in to_repeat(fields) if name not in repeated_fields}
    if missing:
        names = [name for name in FIELDS if name in missing]
        # The command repeats in full what was repeated in part.
        rest = [change.text for change in changes if change.name not in missing]
        command = resume_command(path, configs, [*rest, *hydra], missing)
        raise InputError(
            f"resume: {path}: its configuration sets {', '.join(names)}, and a run may be somebody "
            "else's: such values count only if you repeat them; "
            + (
                f"if you trust them: {command}"
                if command
                else f"see config.resolved in {MANIFEST}, and say FIELD=VALUE for each"
            )
        )
    return settings, hydra


def resume_command(
    path: Path,
    configs: Sequence[Config],
    overrides: Sequence[str] = (),
    names: Collection[str] | None = None,
) -> str | None:
    """The command that resumes a run or a sweep, ready to be pasted into a shell.

    Args:
        path: the run or sweep.
        configs: as for `resumed_settings`.
        overrides: what the command says besides.
        names: the fields that are repeated; None: all that have to be.

    Returns:
        None where no command line can hold the values as they are, or one may look like another.
    """
    named = dict.fromkeys(name for config in configs for name, _ in to_repeat(config))
    values = {
        name: [field_of(config, name) for config in _with_field(name, configs)]
        for name in named
        if names is None or name in names
    }
    repeated = [f"{name}={_choice(different)}" for name, different in values.items()]
    words = [f"resume={path}", *repeated, *overrides]
    command = " ".join(["jevexp", *map(_shell_word, words)])
    if len(command) > _MAX_COMMAND or not is_printable(command):
        return None
    # A letter of another script can look like one of a name that the person knows.
    if not all(_choice(values[name]).isascii() for name in values if name.endswith(_NAMES)):
        return None
    try:
        changes = [_change(override) for override in parse_overrides(repeated)]
    except InputError:
        return None
    exact = all(
        change.among(value) for change in changes for value in values.get(change.name, [None])
    )
    return command if exact and len(changes) == len(values) else None


def _check(change: _Change, configs: Sequence[Config]) -> None:
    """Refuse a change of nothing, or of what is measured."""
    name = change.name
    if name in _GROUPS:
        if len(change.values) > 1:
            raise _no_change(change.text)
        return
    origins = [_origin(name, config) for config in configs]
    if all(origin in (None, Origin.MEASURED) for origin in origins):
        raise InputError(
            f"resume: {name}: a resumed run keeps what is measured; only caps, tracking, "
            "outputs, timeouts and places of servers and files may change; start a new run "
            "for the rest"
        )
    if not any(_has(config, name) for config in configs):
        raise InputError(f"resume: {name}: the run's configuration has no such field")
    repeats = any(change.among(field_of(config, name)) for config in _with_field(name, configs))
    if len(change.values) > 1 and not repeats:
        raise _no_change(change.text)
    if Origin.CODE in origins and not repeats:
        raise InputError(
            f"resume: {name}: a resumed run keeps what answers; repeat the run's own value, or "
            "start a new run"
        )


def _changed(config: Config, changes: Sequence[_Change]) -> tuple[dict[str, Any], set[str]]:
    """A configuration with the changes in it, and the fields that a person repeated."""
    fields = deepcopy(dict(config))
    repeated_fields: set[str] = set()
    for change in changes:
        name = change.name
        if name in _GROUPS:
            # How many tasks there are is measured, though it stands among the caps.
            kept = {"limit": field_of(fields, "caps.limit")} if name == "caps" else {}
            fields[name] = compose_group(name, str(change.values[0])) | kept
            repeated_fields |= {f"{name}.{field}" for field in fields[name]}
            continue
        origin = _origin(name, fields)
        if origin in (None, Origin.MEASURED) or not _has(fields, name):
            # It is for another run of the sweep.
            continue
        if change.among(field_of(fields, name)):
            repeated_fields.add(name)
        elif origin is not Origin.CODE and len(change.values) == 1:
            parent, _, leaf = name.rpartition(".")
            (field_of(fields, parent) if parent else fields)[leaf] = change.values[0]
            repeated_fields.add(name)
    return fields, repeated_fields


def _change(override: Override) -> _Change:
    name, text = override.key_or_group, override.input_line or ""
    if override.value_type is ValueType.SIMPLE_CHOICE_SWEEP:
        choices = parse_overrides(
            [f"{name}={choice}" for choice in override.sweep_string_iterator()]
        )
        return _Change(name, tuple(map(_value, choices)), text)
    return _Change(name, (_value(override),), text)


def _value(override: Override) -> Any:
    if override.is_sweep_override() or override.is_delete() or override.is_add():
        raise _no_change(override.input_line)
    try:
        return OmegaConf.to_container(
            OmegaConf.create({"value": override.value()}), resolve=True, throw_on_missing=True
        )["value"]  # type: ignore[index,call-overload]
    except OmegaConfBaseException as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"resume: {override.key_or_group}: {reason}") from error


def _no_change(override: str | None) -> InputError:
    return InputError(f"resume: {override}: only FIELD=VALUE changes a resumed run")


def _origin(name: str, config: Config) -> Origin | None:
    return origin_of(name, str(field_of(config, "backend.kind")))


def _with_field(name: str, configs: Sequence[Config]) -> list[Config]:
    """The configurations that hold the field, where it has to be repeated."""
    return [
        config
        for config in configs
        if _has(config, name) and (origin := _origin(name, config)) is not None and origin.repeated
    ]


def _has(config: Config, name: str) -> bool:
    parent, _, leaf = name.rpartition(".")
    fields = field_of(config, parent) if parent else config
    return isinstance(fields, Mapping) and leaf in fields


def _choice(values: Sequence[Any]) -> str:
    """The different values of a sweep's runs, in Hydra's grammar."""
    return ",".join(dict.fromkeys(map(_literal, values)))


def _literal(value: Any) -> str:
    """A value in Hydra's grammar."""
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) and not _WORD.fullmatch(value) else quoted(value)
    if isinstance(value, list):
        return f"[{','.join(map(_literal, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{key}:{_literal(part)}' for key, part in value.items())}}}"
    return dumps(value)


def _shell_word(word: str) -> str:
    """A word of a shell's command line; in double quotes where it holds single ones."""
    if "'" in word and not re.search(r'["$`!\\]', word):
        return f'"{word}"'
    return shlex.quote(word)
