"""A few cases of every target, the same ones every time; `make fuzz` tries 100,000."""

from pathlib import Path

import pytest

from tests.fuzz.running import run
from tests.fuzz.targets import TARGETS, Target
from tests.fuzz.watch import Violation, watched

FEW = {"run directories": 20, "overrides": 10}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_hostile_input_ends_in_an_answer_or_in_one_line(
    target: Target, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JEVEXP_CACHE", str(workplace / "cache"))
    place = workplace / "place"
    place.mkdir()
    cases = FEW.get(target.name, 80)
    assert run(target, cases, place) >= cases


def test_the_watch_sees_what_it_is_there_for(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    with watched(inside):
        (inside / "file").write_text("")
        (inside / "folder").mkdir()
    for escape in (
        lambda: (tmp_path / "file").write_text(""),
        lambda: (inside / ".." / "file").write_text(""),
        (tmp_path / "folder").mkdir,
        lambda: __import__("subprocess").run(["true"], check=False),
        lambda: __import__("pickle").loads(b"cos\nsystem\n."),
    ):
        with pytest.raises(Violation), watched(inside):
            escape()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inside"]
