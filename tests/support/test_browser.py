"""The browser fixture sees what a page does wrong."""

from pathlib import Path

from playwright.sync_api import Browser

from tests.support.browser import PHONE, opened

BAD = """<!doctype html><meta charset=utf-8><title>bad</title>
<div style="width: 500px">wide</div><img src="missing.png">
<script>alert("hello"); console.error("told"); undefinedFunction()</script>"""
GOOD = "<!doctype html><meta charset=utf-8><link rel=icon href='data:,'><title>good</title><p>fine"


def test_it_tells_errors_requests_dialogs_and_overflow(browser: Browser, tmp_path: Path) -> None:
    place = tmp_path / "bad.html"
    place.write_text(BAD)

    with opened(browser, place.as_uri(), width=PHONE) as watched:
        assert watched.requests == [place.as_uri(), (tmp_path / "missing.png").as_uri()]
        assert watched.dialogs == ["hello"]
        assert "told" in watched.errors
        assert any("undefinedFunction" in error for error in watched.errors)
        assert watched.overflow > 100


def test_a_good_page_has_nothing_to_tell(browser: Browser, tmp_path: Path) -> None:
    place = tmp_path / "good.html"
    place.write_text(GOOD)

    with opened(browser, place.as_uri(), scheme="dark", width=PHONE) as watched:
        assert watched.requests == [place.as_uri()]
        assert (watched.errors, watched.dialogs, watched.overflow) == ([], [], 0)
        assert watched.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
