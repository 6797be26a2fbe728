"""A server's login comes from named environment variables, and is shown nowhere."""

import base64
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from jevexp.errors import InputError
from jevexp.tracking import TrackingError, make_tracker
from tests.support.runs import make_run, noul_tasks, tracking

SECRET = "hunter2-and-more"


class Echo(BaseHTTPRequestHandler):
    """Refuses every login, and repeats it."""

    seen: list[str | None]

    def do_GET(self) -> None:
        login = self.headers.get("Authorization")
        body = f"no entry with {login}".encode()
        if self.path != "/health":
            self.seen.append(login)
        self.send_response(200 if self.path == "/health" else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Echo.seen = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}"
        finally:
            running.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("named", "sent"),
    [
        ({"token_env": "JEV_SECRET"}, f"Bearer {SECRET}"),
        (
            {"username_env": "JEV_USER", "password_env": "JEV_SECRET"},
            f"Basic {base64.b64encode(f'me:{SECRET}'.encode()).decode()}",
        ),
    ],
)
def test_the_login_is_sent_and_not_shown(
    named: dict[str, str],
    sent: str,
    server: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JEV_SECRET", SECRET)
    monkeypatch.setenv("JEV_USER", "me")
    # Somebody else's, which MLflow would prefer.
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "other")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "other's")
    before = dict(os.environ)
    tracker = make_tracker(tracking(uri=server, **named), tmp_path)

    with pytest.raises(TrackingError, match=r"401.*\[key\]") as refused:
        tracker.log(make_run(tmp_path / "run", noul_tasks(1)))

    assert set(Echo.seen) == {sent}
    assert SECRET not in str(refused.value)
    assert sent.split()[1] not in str(refused.value)
    assert dict(os.environ) == before


@pytest.mark.parametrize("value", [None, "", "two words", "line\n", "schlüssel"])
def test_a_login_that_cannot_be_sent_is_refused_before_anything_is_asked(
    value: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JEV_SECRET", raising=False)
    if value is not None:
        monkeypatch.setenv("JEV_SECRET", value)

    with pytest.raises(InputError, match=r"^tracking\.token_env: JEV_SECRET ") as refused:
        make_tracker(tracking(uri="http://127.0.0.1:1", token_env="JEV_SECRET"), tmp_path)

    assert not value or value not in str(refused.value)


def test_a_login_of_the_environment_goes_by_plain_http_to_no_other_machine_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", SECRET)
    elsewhere = {"uri": "http://mlflow.example:5000"}

    with pytest.raises(
        InputError, match=r"plain http .*; or unset MLFLOW_TRACKING_TOKEN"
    ) as refused:
        make_tracker(tracking(**elsewhere), tmp_path)

    assert SECRET not in str(refused.value)
    make_tracker(tracking(**elsewhere, allow_http=True), tmp_path)
    make_tracker(tracking(uri="http://127.0.0.1:5000"), tmp_path)
    make_tracker(tracking(), tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_TOKEN")
    make_tracker(tracking(**elsewhere), tmp_path)
