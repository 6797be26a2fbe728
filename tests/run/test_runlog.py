"""run.log: jevexp's own words, and nobody else's."""

import logging
from pathlib import Path

import pytest

from jevexp.run.running import LOGGER, run_log

own = logging.getLogger("jevexp.run")
other = logging.getLogger("httpx")


def test_only_our_own_messages_are_in_it(tmp_path: Path) -> None:
    with run_log(tmp_path / "run.log"):
        own.info("asking %d tasks", 3)
        own.debug("too much")
        other.warning("GET https://host/?key=sk-secret")
        logging.getLogger("jevexperiment").error("another one")
    content = (tmp_path / "run.log").read_text()
    assert content.endswith("INFO jevexp.run: asking 3 tasks\n")
    assert content.count("\n") == 1


def test_the_terminal_and_other_handlers_see_none_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with run_log(tmp_path / "run.log"):
        own.error("kept to ourselves")
    assert caplog.records == []


def test_everything_is_as_before_afterwards(tmp_path: Path) -> None:
    before = (LOGGER.level, LOGGER.propagate, list(LOGGER.handlers))

    def crash() -> None:
        with run_log(tmp_path / "run.log"):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        crash()
    assert (LOGGER.level, LOGGER.propagate, list(LOGGER.handlers)) == before
    own.error("late")
    assert (tmp_path / "run.log").read_text() == ""


def test_runs_after_each_other_keep_their_words_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with run_log(tmp_path / name):
            own.info("this is %s", name)
    assert (tmp_path / "a").read_text().endswith("this is a\n")
    assert (tmp_path / "b").read_text().endswith("this is b\n")


def test_a_log_is_never_continued(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("mine")
    with pytest.raises(FileExistsError), run_log(tmp_path / "run.log"):
        pytest.fail("logged into an old file")
    assert (tmp_path / "run.log").read_text() == "mine"


def test_a_traceback_names_places_and_classes_and_no_messages(tmp_path: Path) -> None:
    secret = "sk-" + "secret"

    def provider() -> None:
        try:
            raise ValueError(f"bad key {secret}")
        except ValueError as error:
            raise RuntimeError(f"refused {secret}") from error

    with run_log(tmp_path / "run.log"):
        try:
            provider()
        except RuntimeError:
            own.exception("the run crashed")
    content = (tmp_path / "run.log").read_text()
    assert secret not in content
    assert "the run crashed" in content
    assert "RuntimeError\nwhich came from:" in content
    assert "ValueError" in content
    assert "in provider" in content


def test_what_the_operating_system_says_is_kept(tmp_path: Path) -> None:
    with run_log(tmp_path / "run.log"):
        try:
            raise OSError(28, "No space left on device", "/home/somebody/private")
        except OSError:
            own.exception("the run crashed")
    content = (tmp_path / "run.log").read_text()
    assert "OSError: No space left on device\n" in content


def test_errors_that_come_from_each_other_come_to_an_end(tmp_path: Path) -> None:
    one, other = RuntimeError(), ValueError()
    one.__cause__, other.__cause__ = other, one
    with run_log(tmp_path / "run.log"):
        own.error("a circle", exc_info=one)
    assert (tmp_path / "run.log").read_text().count("RuntimeError") == 1
