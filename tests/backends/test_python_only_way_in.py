"""`backend.factory` is the only place where a configuration names code to run."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from omegaconf.basecontainer import BaseContainer as Resolvers
from yaml import YAMLError  # type: ignore[import-untyped]

from jevexp.backends.protocol import make_backend
from jevexp.errors import InputError
from jevexp.run.planning import plan
from tests.support.cli import jevexp
from tests.support.compose import compose


class Bomb:
    """Leaves a mark wherever it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("mark"),)


@pytest.fixture(autouse=True)
def nothing_ran(workplace: Path) -> Iterator[None]:
    """Whatever a test composes leaves no mark."""
    yield
    assert not (workplace / "mark").exists()


@pytest.mark.parametrize(
    "override",
    [
        "+_target_=pathlib.Path.touch",
        "+backend._target_=pathlib.Path.touch",
        "+backend._args_=[mark]",
        "+model._target_=pathlib.Path.touch",
        "+tracking._partial_=true",
        "+backend.__class__=pathlib.Path",
    ],
)
def test_a_target_is_an_unknown_field(override: str) -> None:
    with pytest.raises(InputError, match="no such field"):
        compose(override)


@pytest.mark.parametrize(
    "value", ["${eval:1+1}", "${python:mark}", "${py:os.system}", "${call:x}", "${hydra.mark:}"]
)
def test_a_resolver_that_could_run_code_does_not_exist(value: str) -> None:
    with pytest.raises(InputError):
        compose(f"outputs={value}")


def test_no_resolver_is_registered_but_the_libraries_own() -> None:
    compose()
    own = {"hydra", "now", "python_version", "launch_uid", "concurrency_suffix", "verbs_help"}
    found = {name for name in Resolvers._resolvers if not name.startswith("oc.")}
    assert found <= own


def test_options_reach_the_factory_as_plain_data() -> None:
    settings = compose(
        "backend=python",
        "backend.factory='tests.support.own_model:Answers'",
        "+backend.options.answer={_target_: pathlib.Path.touch, _args_: [mark]}",
    )
    described = make_backend(settings.backend, settings.model, ()).describe()
    assert described["_target_"] == "pathlib.Path.touch"
    assert described["_args_"] == ["mark"]


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:pathlib.Path.touch [[mark]]",
        "!!python/name:os.system",
        "!!python/object/new:pathlib.Path [mark]",
        "!!python/module:antigravity",
    ],
)
def test_a_yaml_file_makes_no_objects(tag: str, workplace: Path) -> None:
    option = workplace / "mine" / "caps" / "bad.yaml"
    option.parent.mkdir(parents=True)
    option.write_text(f"defaults: [default]\nname: {tag}\n")
    with pytest.raises((InputError, YAMLError)):
        compose("--config-dir", "mine", "caps=bad")


@pytest.mark.parametrize(
    "arguments",
    [
        ("backend=fake", "backend.mode=script", "backend.script=bomb.pickle"),
        ("backend=replay", "backend.answers=bomb.pickle"),
        ("dataset=local", "dataset.path=bomb.pickle"),
    ],
    ids=["script", "answers", "tasks"],
)
def test_a_pickle_is_no_file_of_ours(arguments: tuple[str, ...], workplace: Path) -> None:
    (workplace / "bomb.pickle").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(InputError):
        plan(compose("dataset=demo", "tracking=none", *arguments))


def test_launchers_and_sweepers_are_hydras_own_plugins(workplace: Path) -> None:
    (workplace / "my_hook.py").write_text("import pathlib\npathlib.Path('mark').touch()\n")
    fast = ("dataset=demo", "caps=smoke", "tracking=none")
    for node in ("launcher", "sweeper"):
        jevexp("-m", *fast, f"hydra.{node}._target_=my_hook.Hook", cwd=workplace)


@pytest.mark.parametrize(
    ("override", "field"),
    [
        ("+hydra.callbacks.x._target_=pathlib.Path", "hydra.callbacks: would run code"),
        ("+hydra.callbacks.x={_target_: pathlib.Path.touch}", "hydra.callbacks: would run code"),
        ("hydra.searchpath=[pkg://tests.support.own_model]", "hydra.searchpath: would take"),
        (
            "+hydra.job_logging.handlers.x.class=pathlib.Path",
            "hydra.job_logging: jevexp keeps a log of its own",
        ),
        (
            "+hydra.hydra_logging.formatters.x.class=pathlib.Path",
            "hydra.hydra_logging: jevexp keeps a log of its own",
        ),
    ],
)
@pytest.mark.parametrize("mode", [(), ("-m", "backend.seed=1,2"), ("--cfg", "job")])
def test_hydras_own_node_names_no_code(
    override: str, field: str, mode: tuple[str, ...], workplace: Path
) -> None:
    done = jevexp(*mode, "dataset=demo", "tracking=none", override, cwd=workplace)
    assert done.status == 2
    assert done.err.startswith(f"error: {field}")
    assert list(workplace.iterdir()) == []


def test_a_persons_option_cannot_bring_callbacks(workplace: Path) -> None:
    own = workplace / "mine/experiment/bad.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(
        "# @package _global_\nhydra:\n  callbacks:\n    x:\n      _target_: pathlib.Path.touch\n"
    )
    done = jevexp("--config-dir", "mine", "experiment=bad", "dataset=demo", cwd=workplace)
    assert done.status == 2
    assert done.err.startswith("error: hydra.callbacks: would run code")
