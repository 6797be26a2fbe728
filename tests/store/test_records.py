"""Records as lines, and adopted ones that wait for their places."""

from pathlib import Path

import pytest

from jevexp.core.identity import Fingerprint
from jevexp.errors import InputError
from jevexp.store.manifest import Resumed
from jevexp.store.records import AdoptedAnswer, AdoptedRecords, Adoption, lines, read_records
from jevexp.untrusted.files import MAX_LINE_BYTES
from tests.support.tasks import record, task

ORDER = ["t0", "t1", "t2", "t3"]
RECORDS = {task_id: record(task("noul", id=task_id)) for task_id in ORDER}
ENTRY = Resumed(
    run="earlier", path="/runs/earlier", manifest_sha256="0" * 64, checksums_sha256=None,
    adopted=[], recovered=[], charged_usd=0.0, sessions=[],
)  # fmt: skip


def fingerprint(value: str, *, version: int = 1, **inputs: object) -> Fingerprint:
    return Fingerprint(version=version, value=value, inputs=inputs)


def adoption(then: Fingerprint | None) -> Adoption:
    return Adoption(ENTRY, (), then)


@pytest.mark.parametrize("adopted", [["t0", "t2"], ["t1", "t3"], ["t3"], ORDER])
def test_adopted_records_wait_until_the_last_one_is_given_out(adopted: list[str]) -> None:
    waiting = AdoptedRecords(ORDER, {task_id: RECORDS[task_id] for task_id in adopted})
    given = []
    for task_id in ORDER:
        given += waiting.until({task_id})
        assert given == [RECORDS[one] for one in adopted if one < task_id]
        assert waiting.waiting == (adopted[-1] >= task_id)
    assert waiting.until(()) == ([RECORDS["t3"]] if "t3" in adopted else [])
    assert not waiting.waiting
    assert waiting.until(()) == []


def test_adopted_records_lead_up_to_the_first_task_that_is_to_be_asked() -> None:
    records = AdoptedRecords(ORDER, {task_id: RECORDS[task_id] for task_id in ("t0", "t1", "t3")})
    assert records.until({"t2"}) == [RECORDS["t0"], RECORDS["t1"]]
    assert records.until({"t2"}) == []
    assert records.waiting
    assert records.until(()) == [RECORDS["t3"]]


def test_nothing_waits_where_nothing_was_adopted() -> None:
    assert not AdoptedRecords(ORDER, {}).waiting
    assert AdoptedRecords(ORDER, {}).until(()) == []


def test_a_fingerprint_that_differs_is_told_by_its_inputs() -> None:
    then = fingerprint("aa", backend="fake", template="old")
    now = fingerprint("bb", backend="fake", template="new", threads=4)
    assert adoption(then).difference(now) == (
        'fingerprint: aa then, bb now; template: "old" then, "new" now; threads: null then, 4 now'
    )
    assert adoption(then).difference(then) is None
    assert adoption(None).difference(now) is None
    later = fingerprint("aa", version=2, backend="fake", template="old")
    assert adoption(then).difference(later) == "fingerprint: aa then, aa now"


@pytest.mark.parametrize(("length", "cut"), [(78, False), (79, True)])
def test_a_long_input_is_cut_after_eighty_characters(length: int, cut: bool) -> None:
    then, now = fingerprint("aa", template="x" * length), fingerprint("bb", template="")
    line = adoption(then).difference(now)
    # With its quotation marks.
    shown = f'"{"x" * 79}…' if cut else f'"{"x" * length}"'
    assert line == f'fingerprint: aa then, bb now; template: {shown} then, "" now'


def test_raw_evidence_that_is_not_the_records_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "raw.json"
    path.write_text("{}")
    with pytest.raises(InputError, match=r"raw\.json: not the raw evidence of task 't0'"):
        AdoptedAnswer(RECORDS["t0"], path).raw_bytes()


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_line_beyond_all_records_is_named_by_its_number(tmp_path: Path, place: int) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(lines(list(RECORDS.values())[:place]) + b"x" * (MAX_LINE_BYTES + 1))
    with pytest.raises(ValueError, match="longer than") as raised:
        list(read_records(path))
    assert str(raised.value).startswith(f"{path}:{place + 1}: not a record: longer than")
