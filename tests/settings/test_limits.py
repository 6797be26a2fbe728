"""Where each setting's values end: the last that is taken, and the first that is not."""

from typing import Any

import pytest
from pydantic import ValidationError

from jevexp.core.json import dumps
from jevexp.errors import InputError
from jevexp.settings import (
    FakeBackend,
    FrozenSettings,
    LlamaCppBackend,
    Tracking,
    backends,
    base,
    run,
)
from jevexp.settings.tracking import MlflowTracking
from tests.support.compose import compose

LEAST = 5e-324
SHA256 = "0123456789abcdef" * 4
CASES: list[tuple[type[FrozenSettings], str, list[Any], list[Any]]] = [
    (run.PinnedFile, "sha256", [SHA256], [SHA256[:-1], SHA256 + "0", SHA256.upper(), None]),
    (run.PinnedFile, "bytes", [1], [0, -1]),
    (run.PinnedFile, "tasks", [1], [0, -1]),
    (run.Dataset, "name", ["a", "a" * 64, "0.a_b-c"], ["", "a" * 65, ".a", "-a", "_a", "a/b"]),
    (run.WeightFile, "bytes", [1, None], [0]),
    (run.Quantization, "tensor_types", [{"F32": 1}, None], [{"F32": 0}]),
    (run.ModelIdentity, "alias", ["a", " "], [""]),
    (run.ModelIdentity, "context", [64, None], [63]),
    (run.Caps, "cap_usd", [0, 0.0, LEAST], [-LEAST]),
    (run.Caps, "reserve_usd", [0, LEAST], [-LEAST]),
    (run.Caps, "limit", [1, None], [0]),
    (run.Pricing, "input_per_m", [0, None], [-LEAST]),
    (run.Pricing, "output_per_m", [0, None], [-LEAST]),
    (run.Runner, "concurrency", [1, 1024], [0, 1025]),
    (run.Settings, "outputs", ["o"], [""]),
    (MlflowTracking, "experiment", ["e", "e" * 500], ["", "e" * 501]),
    (MlflowTracking, "timeout_s", [LEAST, 1], [0, -1]),
    (backends.ServerCommand, "start_timeout_s", [LEAST, 1], [0]),
    (backends.HttpBackend, "timeout_s", [LEAST], [0]),
    (backends.HttpBackend, "connect_timeout_s", [LEAST], [0]),
    (backends.HttpBackend, "key_env", ["_", "Z9", None], ["9", "a-b", ""]),
    (backends.OpenAIChatBackend, "max_tokens", [1], [0]),
    (backends.LogprobsReadout, "bias", [LEAST, 100], [0, 100.00000000000001]),
    (backends.LogprobsReadout, "top_logprobs", [2, 1000], [1, 1001]),
    (backends.LlamaServer, "context", [64], [63]),
    (backends.LlamaServer, "threads", [1, None], [0]),
    (backends.LlamaServer, "slots", [1], [0]),
    (backends.LlamaServer, "gpu_layers", [-1, 0], [-2]),
    (backends.LlamaReadout, "extra_probs", [0, 100], [-1, 101]),
    (backends.FakeBackend, "accuracy", [0, 1], [-LEAST, 1.0000000000000002]),
    (backends.FakeBackend, "latency_s", [0, 60], [-LEAST, 60.00000000000001]),
]


def fits(settings: type[FrozenSettings], fields: dict[str, Any]) -> bool:
    """Whether nothing is wrong with these fields, whatever else is missing."""
    try:
        settings.model_validate_json(dumps(fields))
    except ValidationError as error:
        return not {str(fault["loc"][0]) for fault in error.errors()} & fields.keys()
    return True


@pytest.mark.parametrize(("settings", "field", "taken", "refused"), CASES)
def test_a_setting_ends_where_it_should(
    settings: type[FrozenSettings], field: str, taken: list[Any], refused: list[Any]
) -> None:
    assert {repr(value): fits(settings, {field: value}) for value in taken + refused} == {
        repr(value): value in taken for value in taken + refused
    }


FLOATS = [case[:2] for case in CASES if LEAST in case[2] or -LEAST in case[3]]


@pytest.mark.parametrize(("settings", "field"), FLOATS)
@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_no_limit_lets_a_number_through_that_is_none(
    settings: type[FrozenSettings], field: str, value: float
) -> None:
    with pytest.raises(ValidationError) as raised:
        settings.model_validate({field: value})
    assert field in {fault["loc"][0] for fault in raised.value.errors()}


@pytest.mark.parametrize("cache", ["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"])
def test_every_type_of_cache_is_known(cache: str) -> None:
    for settings in (run.ModelIdentity, backends.LlamaServer):
        assert fits(settings, {"cache_type_k": cache, "cache_type_v": "iq4_nl"})
        assert not fits(settings, {"cache_type_k": f"{cache}_"})
        assert not fits(settings, {"cache_type_v": ""})


def test_what_earlier_runs_do_not_say_has_the_value_from_then() -> None:
    fields = {"kind": "mlflow", "uri": None, "experiment": "e", "raw_evidence": True}
    tracking = Tracking.of(fields | {"timeout_s": 1})
    assert (tracking.report, tracking.traces, tracking.allow_http) == (True, False, False)
    assert (tracking.token_env, tracking.username_env, tracking.password_env) == (None,) * 3
    llama = compose("backend=llama_cpp", "dataset=demo").resolved()
    del llama["group_access"], llama["backend"]["server"]["allow_http"]
    settings = run.Settings.of(llama)
    assert isinstance(settings.backend, LlamaCppBackend)
    assert settings.backend.server.allow_http is settings.group_access is False
    command = backends.ServerCommand.of({"command": None, "start_timeout_s": 1})
    assert command.api_key_env is None


REFUSED = [
    (backends.ServerCommand, {"command": ["x"], "start_timeout_s": 1}, "command: holds no {port}"),
    (backends.ServerCommand, {"command": [], "start_timeout_s": 1}, "command: holds no {port}"),
    (
        backends.ServerCommand,
        {"command": None, "start_timeout_s": 1, "api_key_env": "KEY"},
        "api_key_env: only a server that command starts",
    ),
    (
        backends.TypevetSession,
        {"backend": "vllm", "framing": "chatml_thinking", "distributions": None},
        "framing: only backend=llama_cpp",
    ),
    (
        backends.TypevetSession,
        {"backend": "vllm", "framing": None, "distributions": "x.json"},
        "distributions: only backend=fake",
    ),
    (
        backends.ReplayBackend,
        {"kind": "replay", "name": "r", "run": None, "answers": None},
        "run: missing",
    ),
    (
        backends.ReplayBackend,
        {"kind": "replay", "name": "r", "run": "r", "answers": "a"},
        "answers: backend.run is given as well",
    ),
    (
        run.Dataset,
        {"name": "d", "source": "shipped", "sha256": SHA256},
        "sha256: only dataset=local",
    ),
]
TAKEN = [
    (backends.ServerCommand, {"command": ["x", "-p{port}"], "start_timeout_s": 1}),
    (
        backends.ServerCommand,
        {"command": ["{port}"], "start_timeout_s": 1, "api_key_env": "KEY"},
    ),
    (
        backends.TypevetSession,
        {"backend": "llama_cpp", "framing": "chatml_thinking", "distributions": None},
    ),
    (backends.TypevetSession, {"backend": "fake", "framing": None, "distributions": "x.json"}),
    (backends.TypevetSession, {"backend": "vllm", "framing": None, "distributions": None}),
    (backends.ReplayBackend, {"kind": "replay", "name": "r", "run": "r", "answers": None}),
    (backends.ReplayBackend, {"kind": "replay", "name": "r", "run": None, "answers": "a"}),
    (run.Dataset, {"name": "d", "source": "local", "path": "p", "sha256": SHA256}),
    (run.Dataset, {"name": "d", "source": "pinned", "path": "p"}),
]


@pytest.mark.parametrize(("settings", "fields", "line"), REFUSED)
def test_fields_that_do_not_go_together_are_refused(
    settings: type[FrozenSettings], fields: dict[str, Any], line: str
) -> None:
    with pytest.raises(InputError) as raised:
        settings.of(fields, at="x")
    assert str(raised.value).startswith(f"x.{line}")


@pytest.mark.parametrize(("settings", "fields"), TAKEN)
def test_fields_that_go_together_are_kept(
    settings: type[FrozenSettings], fields: dict[str, Any]
) -> None:
    dumped = settings.of(fields).model_dump(mode="json")
    assert {name: dumped[name] for name in fields} == fields


JUDGEVET: dict[str, Any] = {
    "kind": "judgevet", "name": "j", "base_url": None, "key_env": None, "allow_http": False,
    "timeout_s": 1, "factory": None, "provider": "http",
    "typevet": {"backend": "fake", "framing": None, "distributions": None},
}  # fmt: skip
VLLM = {"backend": "vllm", "framing": None, "distributions": None}


@pytest.mark.parametrize(
    ("fields", "has_address", "line"),
    [
        ({"base_url": "https://h"}, True, None),
        ({"provider": "typevet"}, False, None),
        ({"provider": "typevet", "typevet": VLLM, "base_url": "https://h"}, True, None),
        ({"provider": "factory", "factory": "a.b:c.d"}, False, None),
        ({"provider": "factory", "typevet": VLLM, "factory": "a:b"}, False, None),
        ({}, None, "base_url: missing"),
        ({"provider": "typevet", "typevet": VLLM}, None, "base_url: missing"),
        ({"base_url": "http://h.example"}, None, "base_url: "),
        ({"provider": "factory"}, None, "factory: package.module:callable goes with"),
        ({"base_url": "https://h", "factory": "a:b"}, None, "factory: package.module:callable"),
        ({"provider": "factory", "factory": "a"}, None, "factory: expected package.module"),
        ({"provider": "factory", "factory": ":a"}, None, "factory: expected package.module"),
        ({"provider": "factory", "factory": "a-b:c"}, None, "factory: expected package.module"),
    ],
)
def test_a_judgevet_provider_has_an_address_or_a_factory_or_neither(
    fields: dict[str, Any], has_address: bool | None, line: str | None
) -> None:
    if line is None:
        assert backends.JudgevetBackend.of(JUDGEVET | fields).has_address is has_address
    else:
        with pytest.raises(InputError) as raised:
            backends.JudgevetBackend.of(JUDGEVET | fields)
        assert str(raised.value).startswith(line)


HTTP: dict[str, Any] = {
    "kind": "openai_chat", "name": "o", "base_url": "https://h", "key_env": None, "header_env": {},
    "allow_http": False, "connect_timeout_s": 1, "timeout_s": 1, "options": {}, "remove": [],
    "server": {"command": None, "start_timeout_s": 1}, "max_tokens": 1,
}  # fmt: skip
STARTED = {"base_url": None, "server": {"command": ["{port}"], "start_timeout_s": 1}}
KEYED = {"key_env": "KEY"}
HEADED = {"header_env": {"x-a": "A"}}


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"base_url": None}, "base_url: missing; give a running server's address"),
        ({**STARTED, "base_url": "https://h"}, "base_url: give either a running"),
        ({"base_url": "http://h.example"}, "base_url: "),
        (STARTED | KEYED, "key_env: a server that is started here"),
        (STARTED | HEADED, "key_env: a server that is started here"),
        ({"base_url": "https://h/v1"}, "base_url: ends in /v1"),
        ({"base_url": "https://h/v1/"}, "base_url: ends in /v1"),
        *[({"options": {name: 1}}, f"options: {name} is set here")
          for name in ("model", "messages", "prompt", "stream", "n")],
        ({"remove": ["model"]}, "remove: model is set here"),
        ({"header_env": {"a b": "A"}}, "header_env.a b"),
        ({"header_env": {"a": "1"}}, "header_env.a"),
    ],
)  # fmt: skip
def test_an_http_provider_is_asked_at_one_address(fields: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError) as raised:
        backends.OpenAIChatBackend.of(HTTP | fields)
    assert str(raised.value).startswith(line)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        STARTED,
        KEYED | HEADED,
        {"base_url": "http://h.example", "allow_http": True},
        {"base_url": "https://h/v1/x", "options": {"logprobs": 1}, "remove": ["temperature"]},
    ],
)
def test_what_an_http_provider_takes(fields: dict[str, Any]) -> None:
    assert backends.OpenAIChatBackend.of(HTTP | fields).max_tokens == 1


@pytest.mark.parametrize("name", ["logprobs", "top_logprobs", "logit_bias", "temperature", "n"])
def test_what_a_distribution_is_read_with_is_not_set_by_hand(name: str) -> None:
    template: dict[str, Any] = {"kwargs": {}}
    fields = {name: value for name, value in HTTP.items() if name != "max_tokens"} | {
        "kind": "openai_logprobs", "route": None, "template": template,
        "readout": {"bias": 1, "top_logprobs": 2},
    }  # fmt: skip
    assert backends.OpenAILogprobsBackend.of(fields).route is None
    with pytest.raises(InputError, match=rf"^options: {name} is set here; leave it out$"):
        backends.OpenAILogprobsBackend.of(fields | {"options": {name: 1}})


# Messages


@pytest.mark.parametrize("secret", ["sk", "~!", ""])
def test_a_secret_is_read_as_it_stands(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", secret)
    assert base.read_secret(None, "f") is None
    if secret:
        assert base.read_secret("KEY", "f") == secret
    else:
        with pytest.raises(InputError, match=r"^f: KEY is not set; export it"):
            base.read_secret("KEY", "f")


@pytest.mark.parametrize("secret", ["a b", "a\n", "ä", "\t"])
def test_a_secret_that_no_header_can_hold_is_refused_unseen(
    secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", secret)
    with pytest.raises(InputError) as raised:
        base.read_secret("KEY", "f")
    assert str(raised.value) == (
        "f: KEY holds characters that no HTTP header can hold; export it again"
    )


@pytest.mark.parametrize(
    ("field", "at", "line"),
    [
        ("sed", "", "sed: no such field; did you mean seed?"),
        ("x.sed", "x", "x.sed: no such field; did you mean x.seed?"),
        ("x.qqqqq", "x", "x.qqqqq: no such field; x has accuracy, kind, latency_s, mode, name, "
         "script, seed"),
        ("qqqqq", "", "qqqqq: no such field; see jevexp --cfg job for all fields"),
        ("nowhere.latency_s", "", "nowhere.latency_s: no such field; did you mean latency_s?"),
    ],
)  # fmt: skip
def test_an_unknown_field_has_the_nearest_name_or_all_of_its_group(
    field: str, at: str, line: str
) -> None:
    assert base.unknown_field(field, FakeBackend, at) == line


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({"a": [1, {"b": float("inf")}]}, "a[1].b: expected a finite number, found inf"),
        ({"a": "\ud800"}, "a: holds half of a surrogate pair, which is no character"),
        ([[0.5], ("\udfff",)], "[1][0]: holds half of a surrogate pair, which is no character"),
        ({"a": [1, "ä", 0.5, None, True]}, None),
    ],
)
def test_what_json_cannot_hold_is_named_by_its_place(value: Any, line: str | None) -> None:
    assert base._unrepresentable(value, "") == line


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///l.db",
        "sqlite:////l.db",
        "postgresql://h/d",
        "postgresql+psycopg://u@h:1/d?x=1",
    ],
)
def test_the_address_of_a_ledger(url: str) -> None:
    run.check_ledger_url(url)
    for wrong in (url.replace("l.db", "").replace("/d", "/"), f"x{url}", url.replace(":", ";", 1)):
        with pytest.raises(ValueError, match=r"^ledger_url: expected sqlite:///FILE or"):
            run.check_ledger_url(wrong)
