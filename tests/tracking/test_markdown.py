"""Text in a run's note shows itself and does nothing, whoever wrote it."""

import html
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jevexp.store import Manifest
from jevexp.tracking.mlflow.labels import code, note, plain
from jevexp.untrusted.console import is_printable
from tests.support.runs import make_run, manifest, noul_tasks

EVIL = "x`<script>alert(1)</script>|![](http://evil.test/a.png)\n# [l](javascript:1) http://e.test"


def test_plain_text_is_shown_as_it_is() -> None:
    assert html.unescape(plain("a|b *c* <d> `e` [f](g)\n")) == "a|b *c* <d> `e` [f](g)\\n"
    assert not re.search(r"[|*<`\[(:]", plain(EVIL))


def test_nothing_gets_out_of_a_code_span() -> None:
    assert code("a`b|c<d") == "`aˋb｜c＜d`"
    assert code(EVIL).count("`") == 2


@given(st.text(st.characters(codec=None, categories=None)))
def test_every_text_stays_on_its_line(text: str) -> None:
    assert is_printable(plain(text))
    assert is_printable(code(text))


@pytest.mark.parametrize("field", ["dataset", "requested", "resolved", "label", "backend"])
def test_a_note_is_inert(tmp_path: Path, field: str) -> None:
    run = make_run(tmp_path / "run", noul_tasks(1))
    fields = manifest(run.path).model_dump(mode="json")
    if field == "dataset":
        fields["dataset"]["name"] = EVIL
    elif field == "backend":
        fields["backend"]["name"] = EVIL
    elif field == "label":
        fields["model"]["declared"]["quantization"]["label"] = EVIL
    else:
        fields["model"][field] = [EVIL] if field == "resolved" else EVIL
    changed = note(run, Manifest.model_validate(fields), None, {})
    outside = re.sub("`[^`\n]*`", "", changed)
    for acts in ("<script", "![", "](", "\n#"):
        assert acts not in outside
    rows = [line for line in changed.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {3}
