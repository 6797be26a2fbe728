"""Every changed byte is seen, in every file; `make tamper` does the same with thousands."""

import random
from pathlib import Path

from jevexp.verification import State, verify_run
from tests.support.forgery import change_one_byte


def test_every_changed_byte_is_seen(run: Path) -> None:
    files = sorted(path for path in run.rglob("*") if path.is_file())
    draw = random.Random(20)
    # Each file at least twice, then any.
    for path in [*files, *files, *draw.choices(files, k=80)]:
        before = change_one_byte(path, draw)
        assert verify_run(run).state is State.FAILED, path
        path.write_bytes(before)

    assert verify_run(run).state is State.VERIFIED


def test_a_byte_more_or_less_is_seen(run: Path) -> None:
    draw = random.Random(21)
    for path in sorted(path for path in run.rglob("*") if path.is_file()):
        before = path.read_bytes()
        at = draw.randrange(len(before))
        for changed in (before[:at] + before[at + 1 :], before[:at] + b"x" + before[at:]):
            path.write_bytes(changed)
            assert verify_run(run).state is State.FAILED, path
        path.write_bytes(before)


def test_files_that_came_later_are_named_as_not_covered(run: Path) -> None:
    (run / "report.html").write_text("made later")
    (run / "plots").mkdir()
    (run / "plots" / "ece.svg").write_text("made later")

    report = verify_run(run)

    assert report.state is State.VERIFIED
    assert report.not_covered == ("checksums.sha256", "plots/ece.svg", "report.html")


def test_any_other_file_that_came_later_is_seen(run: Path) -> None:
    (run / "note.txt").write_text("trust me")

    report = verify_run(run)

    (failure,) = report.check("files").failures
    assert (failure.file, failure.message) == ("note.txt", "is not in checksums.sha256")
