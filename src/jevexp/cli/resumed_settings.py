"""The configuration of a resumed run: the earlier run's own, and the little that may change."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from hydra.core.override_parser.types import Override
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from jevexp.cli.compose import compose_group, parse_overrides
from jevexp.errors import InputError
from jevexp.settings import Settings

# What decides neither what is asked nor what an answer means. Where a server or a file is may
# change as well, since the fingerprint says whether the same model is behind it.
_CHANGEABLE = frozenset(
    {
        *(f"caps.{name}" for name in ("name", "cap_usd", "reserve_usd", "reason")),
        *(f"caps.ledger{part}" for part in ("", "_on_network", "_url", "_password_env")),
        *(f"tracking.{name}" for name in ("kind", "uri", "experiment", "raw_evidence")),
        *(f"backend.{name}" for name in ("base_url", "key_env", "header_env", "allow_http")),
        *(f"backend.server.{name}" for name in ("base_url", "key_env", "allow_http", "gguf")),
        "dataset.path",
        "harness.path",
        "model.weights.path",
        "outputs",
    }
)
_GROUPS = ("caps", "tracking")
# Programs and code that a directory from somebody else would have run.
_NAMES_CODE = ("backend.factory", "backend.server.command")


def resumed_settings(
    config: dict[str, Any], overrides: Sequence[str]
) -> tuple[Settings, list[str]]:
    """The settings of a resumed run, and the overrides that are for Hydra's own node.

    Args:
        config: the earlier run's resolved configuration.
        overrides: what the command line changes.

    Raises:
        InputError: an override would change what is measured, or the run names code to run and
            nobody repeated that.
    """
    fields = deepcopy(config)
    hydra: list[str] = []
    repeated: set[str] = set()
    for override in parse_overrides(overrides):
        name = override.key_or_group
        if name.partition(".")[0] == "hydra":
            hydra.append(override.input_line or "")
        elif name in _NAMES_CODE and _value(override) == _at(fields, name):
            repeated.add(name)
        elif name in _GROUPS:
            # How many tasks there are is none of a cap's business here.
            kept = {"limit": fields[name]["limit"]} if name == "caps" else {}
            fields[name] = compose_group(name, str(override.value())) | kept
        elif name in _CHANGEABLE or name.endswith("timeout_s"):
            _set(fields, name, _value(override))
        else:
            raise InputError(
                f"resume: {name}: a resumed run keeps what is measured; only caps, tracking, "
                "outputs, timeouts and places of servers and files may change; start a new run "
                "for the rest"
            )
    for name in _NAMES_CODE:
        if (named := _at(fields, name)) is not None and name not in repeated:
            raise InputError(
                f"resume: {name}: the run's configuration names a program to run, {named!r}; "
                f"repeat {name}=… if you trust it"
            )
    return Settings.of(fields), hydra


def _value(override: Override) -> Any:
    if override.is_sweep_override() or override.is_delete() or override.is_add():
        raise InputError(f"resume: {override.input_line}: only FIELD=VALUE changes a resumed run")
    try:
        return OmegaConf.to_container(
            OmegaConf.create({"value": override.value()}), resolve=True, throw_on_missing=True
        )["value"]  # type: ignore[index,call-overload]
    except OmegaConfBaseException as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"resume: {override.key_or_group}: {reason}") from error


def _at(fields: dict[str, Any], name: str) -> Any:
    *parents, leaf = name.split(".")
    for parent in parents:
        fields = fields.get(parent) or {}
    return fields.get(leaf)


def _set(fields: dict[str, Any], name: str, value: Any) -> None:
    *parents, leaf = name.split(".")
    for parent in parents:
        fields = fields.get(parent) or {}
    if leaf not in fields:
        raise InputError(f"resume: {name}: the run's configuration has no such field")
    fields[leaf] = value
