"""Every option composes into settings, and every mistake is one line that says what to do."""

import copy
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from jevexp.cli import conf_dir
from jevexp.errors import InputError
from jevexp.settings import (
    FakeBackend,
    FrozenSettings,
    LlamaCppBackend,
    Settings,
    Tracking,
    field_names,
)
from tests.support.compose import compose

DEFAULTS = compose()
LLAMA = compose("backend=llama_cpp", "model=gemma4_q4km", "dataset=demo")
CHAT = compose("backend=openai_chat", "backend.base_url=http://127.0.0.1:8000")
LOGPROBS = compose("backend=openai_logprobs", "backend.base_url=http://127.0.0.1:8000")
PRICED = compose("pricing=typesafe_jev_1_13")
SPARROW = compose("backend=sparrow", "model=sparrow_nano")
GROUPS = ("backend", "caps", "dataset", "experiment", "harness", "model", "pricing", "tracking")
# What an option leaves open on purpose.
NEEDED = {
    "dataset=local": ["dataset.path=tasks.jsonl"],
    "model=unclaimed": ["model.alias=mine"],
    "backend=python": ["backend.factory='my_model:make'"],
    "backend=replay": ["backend.run=earlier"],
    "backend=cloudflare": ["backend.path=/run/m"],
    "backend=openai_chat": ["backend.base_url=http://127.0.0.1:8000"],
    "backend=openai_logprobs": ["backend.base_url=http://127.0.0.1:8000"],
}


def options(group: str) -> list[str]:
    return sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the values of a resolved configuration are."""
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list) and value:
        for index, part in enumerate(value):
            yield from leaves(part, (*path, index))
    else:
        yield path


def changed(value: dict[str, Any], path: tuple[Any, ...], new: Any) -> dict[str, Any]:
    """A copy with one value replaced."""
    copied = copy.deepcopy(value)
    inner: Any = copied
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return copied


def why_not(**groups: Any) -> str:
    """The line that refuses the default settings with these changes (GROUP__FIELD=VALUE)."""
    composed = DEFAULTS.resolved()
    for name, value in groups.items():
        composed = changed(composed, tuple(name.split("__")), value)
    with pytest.raises(InputError) as raised:
        Settings.of(composed)
    assert "\n" not in str(raised.value)
    return str(raised.value)


# Composition


def test_every_group_has_options() -> None:
    found = {path.name for path in conf_dir().iterdir() if path.is_dir()}
    assert found == {*GROUPS, "hydra"}
    assert all(options(group) for group in GROUPS)


@pytest.mark.parametrize(
    "choice", [f"{group}={option}" for group in GROUPS for option in options(group)]
)
def test_every_option_composes_and_is_valid(choice: str) -> None:
    found = compose(*NEEDED.get(choice, []), choice)
    group, _, option = choice.partition("=")
    if group not in ("experiment", "tracking"):
        assert getattr(found, group).name == option
    assert Settings.of(found.resolved()) == found


@pytest.mark.parametrize("choice", NEEDED)
def test_an_option_that_leaves_something_open_says_so(choice: str) -> None:
    (needed,) = NEEDED[choice]
    field = needed.partition("=")[0]
    with pytest.raises(InputError, match=rf"^{field}: missing"):
        compose(choice)


def test_the_defaults_are_the_public_benchmark_on_the_offline_provider() -> None:
    assert DEFAULTS.dataset.name == "original"
    assert DEFAULTS.backend == FakeBackend(
        kind="fake",
        name="fake",
        mode="uniform",
        script=None,
        accuracy=0.8,
        seed=0,
        latency_s=0.0,
    )
    assert DEFAULTS.model.alias == "fake"
    assert (DEFAULTS.caps.cap_usd, DEFAULTS.caps.reserve_usd) == (15.0, 0.02)
    assert DEFAULTS.caps.limit is None
    assert DEFAULTS.pricing.basis == "unknown"


def test_an_option_of_ones_own_is_found_in_another_folder(tmp_path: Path) -> None:
    (tmp_path / "caps").mkdir()
    (tmp_path / "caps" / "mine.yaml").write_text("defaults: [default]\nname: mine\ncap_usd: 1\n")
    found = compose("--config-dir", str(tmp_path), "caps=mine")
    assert (found.caps.name, found.caps.cap_usd) == ("mine", 1.0)


# Mistakes


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("caps.limt=3", "caps.limt: no such field; did you mean caps.limit?"),
        ("backend.sed=1", "backend.sed: no such field; did you mean backend.seed?"),
        ("caps.nonsense_entirely=3", "caps.nonsense_entirely: no such field; caps has "),
        ("+caps.extra=3", "caps.extra: no such field; caps has cap_usd, "),
        ("+xyz=1", "xyz: no such field; see jevexp --cfg job for all fields"),
        ("outptus=x", "outptus: no such field; did you mean outputs?"),
    ],
)
def test_an_unknown_field_comes_with_the_nearest_right_one(override: str, line: str) -> None:
    with pytest.raises(InputError) as raised:
        compose(override)
    assert str(raised.value).startswith(line)


@pytest.mark.parametrize(
    ("backend", "field", "hint"),
    [
        ("llama_cpp", "backend.base_url", "did you mean backend.server.base_url?"),
        ("llama_cpp", "backend.timeout_s", "did you mean backend.request_timeout_s?"),
        ("llama_cpp", "backend.gguf", "did you mean backend.server.gguf?"),
        ("systemone", "backend.server.base_url", "did you mean backend.base_url?"),
        ("fake", "backend.base_url", "backend has accuracy, kind, latency_s, mode, "),
        ("fake", "backend.server.base_url", "backend has accuracy, kind, latency_s, mode, "),
    ],
)
def test_the_nearest_field_is_one_of_the_chosen_kind(backend: str, field: str, hint: str) -> None:
    with pytest.raises(InputError) as raised:
        compose(f"backend={backend}", f"{field}=x")
    assert str(raised.value).startswith(f"{field}: no such field; {hint}")


def test_a_file_s_unknown_field_is_held_against_its_kind() -> None:
    fields = compose("backend=llama_cpp").model_dump(mode="json")
    fields["backend"]["base_url"] = "http://127.0.0.1:1"
    with pytest.raises(InputError, match=r"^backend.base_url: .* mean backend.server.base_url\?$"):
        Settings.of(fields)


@pytest.mark.parametrize(
    ("part", "settings", "line"),
    [
        ("tracking", Tracking, "tracking.timeout: no such field; did you mean tracking.timeout_s?"),
        ("backend", FakeBackend, "backend.timeout: no such field; backend has accuracy, kind, "),
        ("", Tracking, "timeout: no such field; did you mean timeout_s?"),
    ],
)
def test_an_unknown_field_of_a_part_is_named_where_the_part_stands(
    part: str, settings: type[FrozenSettings], line: str
) -> None:
    fields = (DEFAULTS.backend if part == "backend" else DEFAULTS.tracking).model_dump(mode="json")
    assert settings.of(fields, at=part)
    with pytest.raises(InputError) as raised:
        settings.of(fields | {"timeout": 1}, at=part)
    assert str(raised.value).startswith(line)


@pytest.mark.parametrize(
    ("group", "near"), [("dataset=orignal", "original"), ("backend=llamacpp", "llama_cpp")]
)
def test_an_unknown_option_comes_with_the_nearest_right_one(group: str, near: str) -> None:
    with pytest.raises(InputError, match=rf"^{group}: no such option; did you mean {near}\?"):
        compose(group)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"caps__limit": 0}, "caps.limit: input should be greater than or equal to 1, found 0"),
        ({"caps__limit": 1.5}, "caps.limit: input should be a valid integer, found 1.5"),
        ({"caps__limit": "3"}, "caps.limit: input should be a valid integer, found '3'"),
        ({"caps__limit": True}, "caps.limit: input should be a valid integer, found True"),
        ({"caps__cap_usd": "15"}, "caps.cap_usd: input should be a valid number, found '15'"),
        ({"caps__cap_usd": None}, "caps.cap_usd: input should be a valid number, found None"),
        ({"caps__cap_usd": -0.01}, "caps.cap_usd: input should be greater than or equal to 0"),
        ({"caps__reserve_usd": 0.0}, "caps.reason: reserving nothing needs a reason, which the"),
        ({"backend__kind": "nope"}, "backend: input tag 'nope' found using 'kind' does not"),
        ({"backend__mode": "best"}, "backend.mode: input should be 'uniform', 'script' or"),
        ({"backend__mode": "script"}, "backend.script: a file goes with mode=script, and only"),
        ({"backend__script": "x.json"}, "backend.script: a file goes with mode=script, and"),
        ({"backend__accuracy": 1.1}, "backend.accuracy: input should be less than or equal to 1"),
        ({"backend__name": "../x"}, "backend.name: string should match pattern"),
        ({"backend__name": "a" * 65}, "backend.name: string should match pattern"),
        ({"model__alias": ""}, "model.alias: string should have at least 1 character"),
        ({"model__alias": 5}, "model.alias: input should be a valid string, found 5"),
        ({"outputs": ""}, "outputs: string should have at least 1 character, found ''"),
        ({"harness__name": "best"}, "harness.name: input should be 'native' or 'upstream', found"),
        ({"harness__path": "here"}, "harness.path: only harness=upstream takes one"),
        ({"dataset__sha256": "0" * 64}, "dataset.sha256: only dataset=local takes one; a pin"),
        ({"dataset__dataset_hash": "xyz"}, "dataset.dataset_hash: string should match pattern"),
        ({"tracking__uri": "mlruns"}, "tracking.uri: "),
        ({"tracking__uri": "https://me:pw@host"}, "tracking.uri: holds a password"),
        ({"tracking__timeout_s": 0}, "tracking.timeout_s: input should be greater than 0"),
        (
            {"caps__ledger": "a", "caps__ledger_url": "sqlite:///b"},
            "caps.ledger_url: give either a file, ledger, or a database, ledger_url",
        ),
        ({"caps__ledger_url": "mysql://u@h/d"}, "caps.ledger_url: expected sqlite:///FILE or"),
        ({"caps__ledger_url": "sqlite:///f:x?mode=memory&uri=true"}, "caps.ledger_url: sqlite:///"),
        (
            {"caps__ledger_url": "sqlite:///x.db?nolock=1"},
            "caps.ledger_url: sqlite:///FILE takes no",
        ),
        ({"caps__ledger_url": "sqlite:///"}, "caps.ledger_url: expected sqlite:///FILE or"),
        ({"caps__ledger_url": "sqlite:///:memory:"}, "caps.ledger_url: expected sqlite:///FILE"),
        ({"caps__ledger_url": "postgresql://u@h"}, "caps.ledger_url: expected sqlite:///FILE or"),
        (
            {"caps__ledger_password_env": "PASSWORD"},
            "caps.ledger_password_env: only ledger_url takes a password",
        ),
        (
            {"caps__ledger_url": "sqlite:///b", "harness__name": "upstream"},
            "caps.ledger_url: the pinned harness keeps its ledger in a file",
        ),
        ({"caps": None}, "caps: "),
        ({"caps": [1]}, "caps: "),
    ],
)
def test_a_wrong_value_is_refused_by_field_finding_and_way_out(
    changes: dict[str, Any], line: str
) -> None:
    assert why_not(**changes).startswith(line)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@host/db",
        "postgresql://me:hunter2@host:5432/db?x=1",
        "postgresql://host/db?user=me&password=hunter2",
        "postgresql://host/db?pass%77ord=hunter2",
        "postgresql://me:hun/ter2@host/db",
        "mysql://me:hunter2@host/db",
    ],
)
def test_a_password_in_a_ledgers_address_is_refused_and_not_repeated(url: str) -> None:
    said = why_not(caps__ledger_url=url)
    assert said.startswith("caps.ledger_url: holds a password")
    assert "hunter2" not in said


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("field", ["caps__cap_usd", "pricing__input_per_m", "backend__latency_s"])
def test_a_number_that_is_none_is_refused_by_field(field: str, value: float) -> None:
    name = field.replace("__", ".")
    assert why_not(**{field: value}) == f"{name}: expected a finite number, found {value}"


@pytest.mark.parametrize("override", ["caps.cap_usd=nan", "caps.cap_usd=inf", "caps.cap_usd=.nan"])
def test_a_number_that_is_none_is_refused_from_the_command_line(override: str) -> None:
    with pytest.raises(InputError, match=r"^caps\.cap_usd: "):
        compose(override)


# The least and the most that a field takes; None: there is no such end.
BOUNDS: list[tuple[Settings, str, float | None, float | None]] = [
    (DEFAULTS, "backend.accuracy", 0, 1),
    (DEFAULTS, "backend.latency_s", 0, 60),
    (DEFAULTS, "caps.cap_usd", 0, None),
    (DEFAULTS, "caps.limit", 1, None),
    (compose("caps=unmetered"), "caps.reserve_usd", 0, None),
    (DEFAULTS, "runner.concurrency", 1, 1024),
    (LLAMA, "backend.readout.bias", None, 100),
    (LLAMA, "backend.readout.extra_probs", 0, 100),
    (LLAMA, "backend.server.context", 64, None),
    (LLAMA, "backend.server.gpu_layers", -1, None),
    (LLAMA, "backend.server.slots", 1, None),
    (LLAMA, "backend.server.threads", 1, None),
    (LLAMA, "model.context", 64, None),
    (CHAT, "backend.max_tokens", 1, None),
    (LOGPROBS, "backend.readout.top_logprobs", 2, 1000),
    (PRICED, "pricing.input_per_m", 0, None),
    (PRICED, "pricing.output_per_m", 0, None),
]
ABOVE_ZERO = [
    (LLAMA, "backend.readout.bias"),
    (LLAMA, "backend.server.start_timeout_s"),
    (LLAMA, "backend.connect_timeout_s"),
    (LLAMA, "backend.request_timeout_s"),
    (CHAT, "backend.timeout_s"),
    (CHAT, "backend.connect_timeout_s"),
    (DEFAULTS, "tracking.timeout_s"),
    (DEFAULTS, "model.weights.bytes"),
]


def check_refused(base: Settings, field: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^{re.escape(field)}: "):
        Settings.of(changed(base.resolved(), tuple(field.split(".")), value))


@pytest.mark.parametrize(
    ("base", "field", "least", "most"), BOUNDS, ids=lambda part: str(part)[:40]
)
def test_a_number_has_its_ends(
    base: Settings, field: str, least: float | None, most: float | None
) -> None:
    path = tuple(field.split("."))
    for end, beyond in ((least, -1), (most, 1)):
        if end is not None:
            found: Any = Settings.of(changed(base.resolved(), path, end)).resolved()
            for name in path:
                found = found[name]
            assert found == end
            check_refused(base, field, end + beyond)


@pytest.mark.parametrize(("base", "field"), ABOVE_ZERO, ids=[field for _, field in ABOVE_ZERO])
def test_a_time_and_a_size_are_above_zero(base: Settings, field: str) -> None:
    path = tuple(field.split("."))
    # Less than a second, or a byte.
    Settings.of(changed(base.resolved(), path, 1 if "bytes" in field else 0.001))
    check_refused(base, field, 0)


@pytest.mark.parametrize(
    ("field", "longest"),
    [("tracking.experiment", 500), ("backend.name", 64), ("model.name", 64), ("caps.name", 64)],
)
def test_a_name_has_a_length(field: str, longest: int) -> None:
    Settings.of(changed(DEFAULTS.resolved(), tuple(field.split(".")), "x" * longest))
    check_refused(DEFAULTS, field, "x" * (longest + 1))
    check_refused(DEFAULTS, field, "")


def test_a_field_that_an_earlier_run_lacks_means_what_it_did_without() -> None:
    tracking = {"report": True, "traces": False, "token_env": None, "allow_http": False}
    for base, group, meaning in (
        (DEFAULTS, "tracking", tracking),
        (LLAMA, "backend.server", {"allow_http": False}),
        (SPARROW, "backend.server", {"api_key_env": None}),
        (DEFAULTS, "model", {"context": None, "cache_type_k": None, "cache_type_v": None}),
    ):
        fields = copy.deepcopy(base.resolved())
        inner: Any = fields
        for name in group.split("."):
            inner = inner[name]
        for name in meaning:
            inner.pop(name, None)
        found: Any = Settings.of(fields).resolved()
        for name in group.split("."):
            found = found[name]
        assert {name: found[name] for name in meaning} == meaning


def test_a_missing_field_says_how_to_set_it() -> None:
    composed = DEFAULTS.resolved()
    del composed["caps"]["cap_usd"]
    with pytest.raises(InputError, match=r"^caps\.cap_usd: missing; set caps\.cap_usd=VALUE$"):
        Settings.of(composed)


def test_a_path_of_ones_own_is_given_for_the_local_dataset_only_by_name() -> None:
    with pytest.raises(InputError, match=r"^dataset\.path: missing; give dataset\.path=FILE"):
        compose("dataset=local")


# The object


def test_settings_cannot_be_changed() -> None:
    for part in (DEFAULTS, DEFAULTS.caps, DEFAULTS.backend, DEFAULTS.dataset, LLAMA.backend):
        name = next(iter(type(part).model_fields))
        with pytest.raises(ValidationError, match="frozen"):
            setattr(part, name, getattr(part, name))


def test_every_model_refuses_unknown_keys_and_conversions() -> None:
    def models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
        yield model
        for sub in model.__subclasses__():
            yield from models(sub)

    base = Settings.__mro__[1]
    assert issubclass(base, BaseModel)
    for model in models(base):
        config = model.model_config
        assert (config["frozen"], config["extra"], config["strict"]) == (True, "forbid", True)


def test_all_fields_have_names() -> None:
    names = set(field_names(Settings))
    assert {"outputs", "caps", "caps.limit", "backend.server.context", "backend.seed"} <= names
    assert "model.weights.package.install" in names


# The hash


@given(st.randoms(use_true_random=False))
@settings(max_examples=25)
def test_the_order_of_keys_does_not_change_the_hash(order: Any) -> None:
    def shuffled(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        keys = list(value)
        order.shuffle(keys)
        return {key: shuffled(value[key]) for key in keys}

    assert Settings.of(shuffled(LLAMA.resolved())).config_hash == LLAMA.config_hash


def test_a_whole_number_where_a_fraction_may_stand_does_not_change_the_hash() -> None:
    assert compose("caps.cap_usd=15").config_hash == DEFAULTS.config_hash


@pytest.mark.parametrize("found", [DEFAULTS, LLAMA], ids=["defaults", "llama_cpp"])
def test_every_leaf_changes_the_hash(found: Settings) -> None:
    resolved = found.resolved()
    hashes = {found.config_hash}
    for path in leaves(resolved):
        value: Any = resolved
        for key in path:
            value = value[key]
        # The hash alone is of interest here, so the new value need not be a valid one.
        changed_settings = Settings.model_construct(
            **changed(resolved, path, f"another than {value}")
        )
        with pytest.warns(UserWarning, match="serializer"):
            hashes.add(changed_settings.config_hash)
    assert len(hashes) == 1 + len(list(leaves(resolved)))


def test_different_runs_have_different_hashes() -> None:
    overrides = ["caps=smoke", "dataset=demo", "backend.seed=1", "tracking=none", "outputs=x"]
    hashes = {compose(override).config_hash for override in overrides}
    assert len(hashes | {DEFAULTS.config_hash}) == 6


# Secrets


def test_a_key_is_named_and_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_KEY", "sk-secret")
    found = compose("backend=llama_cpp", "backend.server.key_env=SERVER_KEY")
    assert isinstance(found.backend, LlamaCppBackend)
    assert found.backend.server.key_env == "SERVER_KEY"
    assert "sk-secret" not in repr(found.resolved())
    assert os.environ["SERVER_KEY"] == "sk-secret"


@pytest.mark.parametrize("key", ["sk-secret", "1KEY", "A KEY", "", "KEY=x"])
def test_what_cannot_be_the_name_of_a_variable_is_refused(key: str) -> None:
    with pytest.raises(InputError, match=r"^backend\.server\.key_env: "):
        compose("backend=llama_cpp", f"backend.server.key_env='{key}'")


@pytest.mark.parametrize(
    "url",
    [
        "http://me:pw@host",
        "http://me@host",
        "http://host?key=sk",
        "http://host/#x",
        "http://",
        "ftp://x",
    ],
)
def test_a_servers_address_holds_no_secret(url: str) -> None:
    with pytest.raises(InputError, match=r"^backend\.server\.base_url: ") as raised:
        compose("backend=llama_cpp", f"backend.server.base_url='{url}'")
    if "pw" in url:
        assert "pw" not in str(raised.value)


def test_a_server_is_either_running_or_started() -> None:
    with pytest.raises(InputError, match=r"^backend\.server\.gguf: base_url names a running"):
        compose(
            "backend=llama_cpp",
            "backend.server.base_url='http://127.0.0.1:1'",
            "backend.server.gguf=model.gguf",
        )


# Several requests at once


def test_a_started_server_has_as_many_slots_as_requests_are_under_way() -> None:
    for overrides, slots in (
        ([], 1),
        (["runner.concurrency=4"], 4),
        (["runner.concurrency=4", "backend.server.slots=8"], 8),
    ):
        found = compose("backend=llama_cpp", "model=gemma4_q4km", *overrides).backend
        assert isinstance(found, LlamaCppBackend)
        assert found.server.slots == slots


@pytest.mark.parametrize("value", [0, -1, 1025, 1.5, "2", None])
def test_a_concurrency_is_a_whole_number_from_1_on(value: Any) -> None:
    assert why_not(runner__concurrency=value).startswith("runner.concurrency: input should be ")
