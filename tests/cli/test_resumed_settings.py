"""What a resumed run takes from the earlier one's manifest, and what the person says again."""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeGuard, Union, get_args, get_origin

import pytest
from pydantic import BaseModel

from jevexp.cli.main import main
from jevexp.cli.resumed_settings import resume_command, resumed_settings
from jevexp.errors import InputError
from jevexp.settings import PROVIDERS, LlamaCppBackend, Settings
from jevexp.settings.resuming import (
    FIELDS_BY_ORIGIN,
    ORIGINS,
    OWN_VALUES,
    Origin,
    field_of,
    origin_of,
    to_repeat,
)
from tests.support.cli import only_run
from tests.support.compose import compose

RUN = Path("outputs/a run")
Config = dict[str, Any]


def resolved(*overrides: str) -> Config:
    return compose("dataset=demo", "tracking=none", "caps.limit=6", *overrides).resolved()


def resumed(config: Config, *overrides: str) -> Settings:
    (settings,), _ = resumed_settings(RUN, [config], overrides)
    return settings


def why_not(configs: list[Config], *overrides: str) -> str:
    with pytest.raises(InputError) as caught:
        resumed_settings(RUN, configs, overrides)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def pasted(message: str) -> list[str]:
    """The overrides of the command that a message ends in, but for `resume=`."""
    words = shlex.split(message.partition("jevexp ")[2])
    assert words[0] == f"resume={RUN}"
    return words[1:]


# The one list


def leaves(annotation: Any, path: str) -> Iterator[str]:
    """The dotted names of all fields that hold a value, whatever groups they stand in.

    A group that the list names as a whole is one: it is repeated with all that is in it.
    """
    whole = ORIGINS.get(path)
    models = (
        [] if whole and whole.repeated else [one for one in parts(annotation) if _is_model(one)]
    )
    if not models:
        yield path
    for model in models:
        star = "" if model in direct(annotation) else ".*"
        for name, field in model.model_fields.items():
            yield from leaves(field.annotation, f"{path}{star}.{name}")


def _is_model(annotation: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in get_args(annotation):
        yield from parts(part)


def direct(annotation: Any) -> list[Any]:
    if get_origin(annotation) in (Union, UnionType, Annotated):
        return [one for part in get_args(annotation) for one in direct(part)]
    return [annotation]


def fields() -> Iterator[tuple[str, str]]:
    """Every field of every configuration, and the kind of backend that it stands with."""
    for name, field in Settings.model_fields.items():
        if name != "backend":
            yield from ((one, "") for one in leaves(field.annotation, name))
    for provider in PROVIDERS:
        (kind,) = get_args(provider.settings.model_fields["kind"].annotation)
        yield from ((one, kind) for one in leaves(provider.settings, "backend"))


def test_every_field_of_the_settings_is_in_the_list() -> None:
    unsorted = sorted({name for name, kind in fields() if origin_of(name, kind) is None})
    assert unsorted == [], "say in settings/resuming.py where a resumed run has them from"


def test_the_list_has_no_field_that_the_settings_do_not_have() -> None:
    known = {name for name, _ in fields()} | {f"{kind}:{name}" for name, kind in fields()}
    assert set(ORIGINS) - known == set()
    assert len(ORIGINS) == sum(map(len, FIELDS_BY_ORIGIN.values())), "a field is in two groups"


def test_the_walk_finds_fields_wherever_they_stand() -> None:
    found = set(fields())
    assert ("model.files.*.path", "") in found
    assert ("dataset.files.*.sha256", "") in found
    assert ("model.weights.package.name", "") in found
    assert ("backend.server.gguf", "llama_cpp") in found
    assert ("backend.options", "python") in found
    assert ("outputs", "") in found
    assert ("tracking.also", "") in found


@pytest.mark.parametrize(
    "part", ["url", "uri", "_env", "command", "factory", "gguf", "ledger", "allow_", "outputs"]
)
def test_what_names_an_address_code_or_a_key_is_repeated(part: str) -> None:
    harmless = {"caps.ledger_on_network"}
    named = {(name, kind) for name, kind in fields() if part in name.rpartition(".")[2]}
    named = {(name, kind) for name, kind in named if name not in harmless}
    assert named
    assert [one for one in named if not (origin_of(*one) or Origin.MEASURED).repeated] == []


def test_our_own_values_are_those_of_our_own_configuration() -> None:
    defaults = compose("dataset=original").resolved()
    own = [
        defaults,
        *(compose(f"backend={name}").resolved() for name in ("systemone", "decisions")),
    ]
    found = {name: {field_of(fields, name) for fields in own} - {None} for name in OWN_VALUES}
    assert found == {name: set(values) for name, values in OWN_VALUES.items()}
    assert list(to_repeat(defaults)) == []


# Repeating

STRANGE: Mapping[str, tuple[list[str], dict[str, Any]]] = {
    "an address and a key": (
        ["backend=systemone"],
        {"backend.base_url": "https://api.typesafe.ai", "backend.key_env": "TYPESAFE_API_KEY"},
    ),
    "headers": (
        [
            "backend=openai_chat",
            "backend.base_url=http://10.0.0.7:8000",
            "backend.allow_http=true",
            "+backend.header_env={X-Key:AWS_SECRET_ACCESS_KEY,X-Other:HOME}",
        ],
        {
            "backend.base_url": "http://10.0.0.7:8000",
            "backend.header_env": {"X-Key": "AWS_SECRET_ACCESS_KEY", "X-Other": "HOME"},
            "backend.allow_http": True,
        },
    ),
    "a program": (
        ["backend=sparrow", "model=sparrow_nano", "backend.server.api_key_env=LD_PRELOAD"],
        {
            "backend.server.command": ["sparrow-decider", "serve", "--port", "{port}"],
            "backend.server.api_key_env": "LD_PRELOAD",
        },
    ),
    "code": (
        ["backend=python", "backend.factory=os:system", "+backend.options.command='id; $(x) `y`'"],
        {"backend.factory": "os:system", "backend.options": {"command": "id; $(x) `y`"}},
    ),
    "code of a bridge": (
        [
            "backend=judgevet",
            "backend.provider=factory",
            "backend.factory=a.b:c.d",
            "backend.base_url=null",
            "backend.key_env=null",
        ],
        {"backend.factory": "a.b:c.d"},
    ),
    "a server's address and key": (
        [
            "backend=llama_cpp",
            "model=gemma4_q4km",
            "backend.server.base_url=http://127.0.0.1:1",
            "backend.server.key_env=KEY",
        ],
        {"backend.server.base_url": "http://127.0.0.1:1", "backend.server.key_env": "KEY"},
    ),
    "a file of weights": (
        ["backend=llama_cpp", "model=gemma4_q4km", "backend.server.gguf='it\\'s, a=file'"],
        {"backend.server.gguf": "it's, a=file"},
    ),
    "weights": (
        ["backend=llama_cpp", "model=gemma4_q4km", "model.weights.path='true'"],
        {"model.weights.path": "true"},
    ),
    "a folder of code": (
        ["harness=upstream", "harness.path='/tmp/a \"quoted\" $HOME!'"],
        {"harness.path": '/tmp/a "quoted" $HOME!'},
    ),
    "a ledger": (["caps.ledger=/home/me/.bashrc"], {"caps.ledger": "/home/me/.bashrc"}),
    "a database": (
        [
            "caps.ledger_url='postgresql://me@db.example/x?sslmode=require'",
            "caps.ledger_password_env=PASSWORD",
        ],
        {
            "caps.ledger_url": "postgresql://me@db.example/x?sslmode=require",
            "caps.ledger_password_env": "PASSWORD",
        },
    ),
    "a tracking server": (
        ["tracking=mlflow", "tracking.uri=https://mlflow.example", "tracking.token_env=TOKEN"],
        {"tracking.uri": "https://mlflow.example", "tracking.token_env": "TOKEN"},
    ),
    "where files go": (["outputs=/home/me/.config"], {"outputs": "/home/me/.config"}),
    "an address for tasks": (
        ["dataset=original", "dataset.base_url=https://127.0.0.1"],
        {"dataset.base_url": "https://127.0.0.1"},
    ),
}


@pytest.mark.parametrize("what", sorted(STRANGE))
def test_what_a_stranger_may_have_chosen_is_repeated_ready_to_paste(what: str) -> None:
    overrides, named = STRANGE[what]
    config = resolved(*overrides)
    refused = why_not([config], "caps.cap_usd=3", "hydra.run.dir=there")
    assert refused.startswith(f"resume: {RUN}: its configuration sets {', '.join(named)}, and ")
    given = pasted(refused)
    assert [word.partition("=")[0] for word in given] == [*named, "caps.cap_usd", "hydra.run.dir"]
    settings, hydra = resumed_settings(RUN, [config], given)
    assert settings[0].resolved() == config | {"caps": config["caps"] | {"cap_usd": 3.0}}
    assert hydra == ["hydra.run.dir=there"]
    # What a run prints at its end is the same.
    assert pasted(resume_command(RUN, [config]) or "") == given[: len(named)]


@pytest.mark.parametrize("what", sorted(STRANGE))
def test_each_is_needed(what: str) -> None:
    overrides, named = STRANGE[what]
    config = resolved(*overrides)
    words = pasted(resume_command(RUN, [config]) or "")
    for name, word in zip(named, words, strict=True):
        refused = why_not([config], *[one for one in words if one != word])
        assert f"its configuration sets {name}, and a run may be" in refused
        assert word in pasted(refused)


def test_nothing_is_repeated_where_a_run_names_nothing() -> None:
    config = resolved()
    assert resumed(config).resolved() == config
    assert resume_command(RUN, [config]) == f"jevexp 'resume={RUN}'"


@pytest.mark.parametrize("value", ["${oc.env:HOME}/x", "a\\", "it's", "a,b", "${x", "[1]", "null"])
def test_a_value_is_repeated_as_it_is(value: str) -> None:
    config = resolved()
    config["harness"] = {"name": "upstream", "path": value}
    assert resumed(config, *pasted(why_not([config]))).harness.path == value


@pytest.mark.parametrize("value", ["a\x1b[2J", "a\nb", "a\u202eb", "x" * 5000])
def test_a_value_that_no_command_line_holds_is_not_shown(value: str) -> None:
    config = resolved()
    config["harness"] = {"name": "upstream", "path": value}
    assert why_not([config]).endswith(
        "see config.resolved in manifest.json, and say FIELD=VALUE for each"
    )
    assert resume_command(RUN, [config]) is None


@pytest.mark.parametrize("value", ["https://\u0430pi.typesafe.ai", "https://x.example/\u200b"])
def test_an_address_that_may_look_like_another_is_not_ready_to_paste(value: str) -> None:
    config = resolved("backend=systemone", f"backend.base_url='{value}'")
    assert value not in why_not([config])
    assert resume_command(RUN, [config]) is None
    assert resumed(config, f"backend.base_url='{value}'", "backend.key_env=null")


def test_an_empty_path_is_the_current_folder_and_is_repeated() -> None:
    config = resolved()
    config["harness"] = {"name": "upstream", "path": ""}
    assert pasted(why_not([config])) == ["harness.path=''"]


def test_another_place_is_a_persons_own() -> None:
    config = resolved("backend=systemone", "caps.ledger=theirs", "harness=upstream")
    settings = resumed(
        config, "backend.base_url=https://mine.example", "backend.key_env=null", "caps=default"
    )
    assert settings.resolved()["backend"]["base_url"] == "https://mine.example"
    assert settings.resolved()["backend"]["key_env"] is None
    assert settings.caps.ledger is None


@pytest.mark.parametrize(
    ("overrides", "other"),
    [
        (["backend=sparrow", "model=sparrow_nano"], "backend.server.command=[other,'{port}']"),
        (["backend=python", "backend.factory=a:b"], "backend.factory=a:c"),
        (["backend=python", "backend.factory=a:b", "+backend.options.x=1"], "backend.options={}"),
        (
            ["backend=python", "backend.factory=a:b", "+backend.options.x=1"],
            "backend.options={x:true}",
        ),
    ],
)
def test_code_is_repeated_and_not_exchanged(overrides: list[str], other: str) -> None:
    name = other.partition("=")[0]
    assert why_not([resolved(*overrides)], other).startswith(
        f"resume: {name}: a resumed run keeps what answers"
    )


# A sweep's runs


def test_a_sweep_repeats_every_runs_value_and_each_keeps_its_own() -> None:
    configs = [
        resolved("backend=python", "backend.factory=a:one"),
        resolved("backend=python", "backend.factory=a:two", "+backend.options.x=1"),
        resolved("backend=systemone"),
        resolved("backend=systemone", "backend.key_env=null"),
        resolved(),
    ]
    given = pasted(why_not(configs, "tracking=none"))
    assert given == [
        "backend.factory=a:one,a:two",
        "backend.options={},{x:1}",
        "backend.base_url=https://api.typesafe.ai",
        "backend.key_env=TYPESAFE_API_KEY,null",
        "tracking=none",
    ]
    settings, _ = resumed_settings(RUN, configs, given)
    assert [one.resolved() for one in settings] == configs
    assert "backend.factory, and" in why_not(configs, "backend.factory=a:one", *given[1:])


def test_several_values_change_nothing() -> None:
    configs = [resolved("backend=systemone")]
    assert "only FIELD=VALUE changes" in why_not(configs, "backend.key_env=A,B")


def test_a_command_line_changes_the_place_of_all_runs() -> None:
    configs = [resolved("backend=systemone", f"backend.base_url=https://{one}") for one in "ab"]
    mine = ["backend.base_url=https://mine.example", "backend.key_env=null"]
    settings, _ = resumed_settings(RUN, configs, mine)
    assert {one.resolved()["backend"]["base_url"] for one in settings} == {"https://mine.example"}


# What may change


@pytest.fixture(scope="module")
def config() -> Config:
    return compose("dataset=demo", "backend=llama_cpp", "caps.limit=6").resolved()


@pytest.mark.parametrize(
    ("override", "group", "field", "value"),
    [
        ("caps.cap_usd=3", "caps", "cap_usd", 3.0),
        ("caps=shared", "caps", "limit", 6),
        ("tracking=none", "tracking", "kind", "none"),
        ("backend.request_timeout_s=7", "backend", "request_timeout_s", 7.0),
        ("dataset.path='a=b, c.jsonl'", "dataset", "path", "a=b, c.jsonl"),
    ],
)
def test_what_is_not_measured_may_change(
    config: Config, override: str, group: str, field: str, value: Any
) -> None:
    (settings,), hydra = resumed_settings(RUN, [config], [override, "hydra.run.dir=there"])
    assert settings.resolved()[group][field] == value
    assert settings.resolved() == config | {group: settings.resolved()[group]}
    assert hydra == ["hydra.run.dir=there"]


@pytest.mark.parametrize(
    "override",
    [
        "caps.limit=5",
        "backend=fake",
        "backend.readout.bias=13",
        "backend.server.context=512",
        "model.alias=x",
        "dataset=easy",
        "identity=record",
        "runner.concurrency=1",
        "pricing=local",
        "harness=upstream",
        "no.such=field",
    ],
)
def test_what_is_measured_may_not(config: Config, override: str) -> None:
    name = override.partition("=")[0]
    assert why_not([config], override).startswith(f"resume: {name}: a resumed run keeps")


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ("backend.timeout_s=3", "the run's configuration has no such field"),
        ("caps.cap_usd=-1", "caps.cap_usd: "),
        ("caps.cap_usd=1,2", "only FIELD=VALUE changes a resumed run"),
        ("caps.cap_usd=range(1,3)", "only FIELD=VALUE changes a resumed run"),
        ("caps=default,shared", "only FIELD=VALUE changes a resumed run"),
        ("~caps.reason", "only FIELD=VALUE changes a resumed run"),
        ("caps.reason=${nothing.there}", "resume: caps.reason: "),
        ("caps=nothing", "no such option"),
        ("caps", "not an override"),
    ],
)
def test_a_change_that_is_none_is_one_line(config: Config, override: str, reason: str) -> None:
    assert reason in why_not([config], override)


@pytest.mark.parametrize(
    "broken", [{}, {"backend": 5}, {"backend": {"kind": []}}, {"caps": []}, {"outputs": {"a": 1}}]
)
def test_a_configuration_of_another_shape_is_one_line(config: Config, broken: Config) -> None:
    for overrides in ([], ["caps.cap_usd=1"], ["tracking=none"], ["backend.server.base_url=x"]):
        why_not([config | broken if broken else {}], *overrides)


# As a person sees it


def test_the_advice_at_the_end_of_a_run_works_when_it_is_pasted(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (workplace / "factory_of_mine.py").write_text(
        "def make(**options):\n"
        "    def decide(request):\n"
        "        if not options['path'] or not __import__('os').path.exists(options['path']):\n"
        "            raise RuntimeError('not now')\n"
        "        names = request.question.options\n"
        "        return {name: 1 / len(names) for name in names}\n"
        "    return decide\n"
    )
    command = ["dataset=demo", "tracking=none", "caps.limit=4", "outputs=some where"]
    command += ["backend=python", "backend.factory=factory_of_mine:make"]
    assert main([*command, "+backend.options.path='it, is'"]) == 1
    run = only_run(workplace / "some where")
    before = sorted(workplace.rglob("*"))
    (advice,) = [one for one in capsys.readouterr().out.splitlines() if "go on with it" in one]
    assert main([f"resume={run}"]) == 2
    assert sorted(workplace.rglob("*")) == before
    refused = capsys.readouterr().err
    assert refused.rstrip().endswith(advice.removeprefix("go on with it: ").partition(" out")[2])
    (workplace / "it, is").touch()
    # This process has its name for directories once, which a second start would have anew.
    assert main([*shlex.split(advice.partition("jevexp ")[2]), "hydra.run.dir=again"]) == 0


def test_access_for_a_group_is_for_whoever_resumes_to_give() -> None:
    config = resolved("group_access=true")
    assert "sets group_access, and" in why_not([config])
    assert resumed(config, "group_access=true").group_access is True
    assert resumed(config, "group_access=false").group_access is False
    # As in manifests from before there was such a field.
    del config["group_access"]
    assert resumed(config).group_access is False


def test_a_run_from_before_routes_takes_what_is_usual_now() -> None:
    config = resolved("backend=llama_cpp", "model=unclaimed", "model.alias=m")
    del config["backend"]["isolation"], config["backend"]["readout"]["route"]
    backend = resumed(config).backend
    assert isinstance(backend, LlamaCppBackend)
    assert (backend.readout.route, backend.isolation) == ("auto", "each")
