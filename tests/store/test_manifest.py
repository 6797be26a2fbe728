"""What a manifest has to hold, and what it says of itself."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from jevexp.store.manifest import Config, Manifest, Program, differing_overrides
from tests.support.runs import manifest

RESOLVED: dict[str, Any] = {"dataset": {}, "tracking": {}, "outputs": "outputs"}


def config(resolved: dict[str, Any]) -> Config:
    return Config(sha256="0" * 64, overrides=[], resolved=resolved)


def changed(path: Path, **sections: dict[str, Any]) -> Manifest:
    fields = manifest(path).model_dump(mode="json")
    return Manifest.model_validate(
        fields | {name: fields[name] | sections[name] for name in sections}
    )


def test_a_configuration_may_hold_more_than_every_reader_looks_up() -> None:
    assert config(RESOLVED | {"more": 1}).resolved == RESOLVED | {"more": 1}


@pytest.mark.parametrize("field", sorted(RESOLVED))
def test_a_configuration_without_what_every_reader_looks_up_is_none(field: str) -> None:
    left = {name: value for name, value in RESOLVED.items() if name != field}
    with pytest.raises(ValidationError, match=f"{field} is missing"):
        config(left)
    for other in (None, 1, [], "x" if field != "outputs" else {}):
        with pytest.raises(ValidationError, match=f"{field} is missing"):
            config(RESOLVED | {field: other})


def test_models_that_answered_under_another_name_are_unexpected(tmp_path: Path) -> None:
    model = {"requested": "mine", "resolved": ["another", "mine", "third"]}
    assert changed(tmp_path, model=model).model.unexpected_models == ["another", "third"]
    model = {"requested": "mine", "resolved": ["mine"]}
    assert changed(tmp_path, model=model).model.unexpected_models == []


def test_the_title_names_a_concurrency_that_is_not_the_benchmarks(tmp_path: Path) -> None:
    run = manifest(tmp_path)
    title = f"{run.dataset.name} · {run.model.declared.name} · {run.backend.name}"
    assert run.title == title
    assert run.model_copy(update={"concurrency": 2}).title == f"{title} · ×2"
    assert run.titled("mine") == f"{run.dataset.name} · mine · {run.backend.name}"


def test_programs_are_the_earlier_ones_and_the_runs_own(tmp_path: Path) -> None:
    earlier = Program(run="before", jevexp="0.1", git_commit="abc", git_dirty=False)
    run = changed(tmp_path, software={"earlier": [earlier.model_dump()]})
    own = run.software
    assert run.programs == [
        earlier,
        Program(run=run.run, jevexp=own.jevexp, git_commit=own.git_commit, git_dirty=own.git_dirty),
    ]


def test_only_overrides_that_differ_tell_runs_apart(tmp_path: Path) -> None:
    runs = [
        changed(tmp_path, config={"overrides": overrides})
        for overrides in (["a=1", "b=x=y", "c=3"], ["c=3", "a=2", "b=x=y"], ["a=1", "b=x=y"])
    ]
    assert differing_overrides(runs) == [{"a": "1", "c": "3"}, {"a": "2", "c": "3"}, {"a": "1"}]
