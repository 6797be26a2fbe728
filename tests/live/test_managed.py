"""Managed servers from start to end, whichever end that is."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from jevexp.backends.llama_cpp import LlamaCpp
from jevexp.backends.llama_cpp.server import ManagedServer
from jevexp.backends.server import LOG_NAME
from jevexp.core.decision import Decision
from jevexp.errors import InputError
from tests.support.llama import backend_settings, model_identity, noul

pytestmark = pytest.mark.live

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def managed(tiny_gguf: Path, tmp_path: Path) -> Iterator[LlamaCpp]:
    backend = LlamaCpp(backend_settings(gguf=str(tiny_gguf)), model_identity())
    yield backend.open(tmp_path)
    backend.close()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def gone(pid: int, within_s: float = 10.0) -> bool:
    deadline = time.monotonic() + within_s
    while alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def pid_of(backend: LlamaCpp) -> int:
    assert backend.server_pid is not None
    return backend.server_pid


def test_it_answers_under_the_configured_alias_and_logs_to_the_run(
    managed: LlamaCpp, tmp_path: Path, tiny_gguf: Path
) -> None:
    decision = managed.decide(noul())
    assert (decision.ok, decision.model) == (True, "tiny-f32")
    facts = managed.describe()
    assert (facts["managed"], facts["base_url"]) == (True, "http://127.0.0.1")
    assert (facts["gguf"], facts["model_path"]) == (str(tiny_gguf), str(tiny_gguf))
    assert facts["library"].startswith("xllamacpp ")
    assert (facts["cache_type_k"], facts["cache_type_v"]) == ("f16", "f16")
    assert "listening on http://127.0.0.1" in (tmp_path / LOG_NAME).read_text()


def test_nobody_without_its_key_is_answered(managed: LlamaCpp, tmp_path: Path) -> None:
    assert managed._connection is not None
    server = managed._connection.server
    assert server is not None
    log = (tmp_path / LOG_NAME).read_text()
    port = re.findall(r"listening on http://127\.0\.0\.1:(\d+)", log)[0]
    origin = {"Origin": "https://page.example"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        for headers in ({}, origin, {"Authorization": "Bearer guessed"}):
            for path in ("/props", "/slots", "/lora-adapters", "/nothing"):
                assert client.get(path, headers=headers).status_code == 401, path
            for path in ("/completion", "/tokenize", "/apply-template", "/v1/chat/completions"):
                assert client.post(path, headers=headers, json={}).status_code == 401, path
        # What stays open, which docs/reference/llama-cpp.md says.
        assert client.get("/health").status_code == 200
        keyed = {"Authorization": f"Bearer {server.key}"}
        answer = client.get("/props", headers=keyed | origin)
        assert answer.status_code == 200
        assert answer.headers.get("Access-Control-Allow-Origin", "") == ""
    assert managed.decide(noul()).ok


def test_its_key_is_another_one_each_time_and_nowhere(
    managed: LlamaCpp, tiny_gguf: Path, tmp_path: Path
) -> None:
    assert managed._connection is not None
    first = managed._connection.server
    assert first is not None
    assert first.key is not None
    decision = managed.decide(noul())
    seen = repr(managed.describe()) + repr(decision) + (tmp_path / LOG_NAME).read_text()
    pid = pid_of(managed)
    for place in (Path(f"/proc/{pid}/cmdline"), Path(f"/proc/{pid}/environ")):
        seen += place.read_text() if place.exists() else ""
    assert first.key not in seen
    assert first.key[-4:] not in (tmp_path / LOG_NAME).read_text()
    other = ManagedServer(tiny_gguf, "other", backend_settings().server)
    assert other.key != first.key
    assert len(first.key) > 40


def test_closing_ends_it(managed: LlamaCpp) -> None:
    pid = pid_of(managed)
    managed.close()
    assert not alive(pid)
    assert managed.server_pid is None


def test_two_at_once_do_not_meet(managed: LlamaCpp, tiny_gguf: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = LlamaCpp(backend_settings(gguf=str(tiny_gguf)), model_identity(alias="other"))
    other.open(tmp_path / "other")
    assert (managed.decide(noul()).model, other.decide(noul()).model) == ("tiny-f32", "other")
    other.close()


def test_each_of_several_slots_has_the_whole_context(tiny_gguf: Path, tmp_path: Path) -> None:
    settings = backend_settings(gguf=str(tiny_gguf), slots=2, context=512, threads=1)
    backend = LlamaCpp(settings, model_identity()).open(tmp_path)
    facts = backend.describe()
    backend.close()
    assert (facts["total_slots"], facts["n_ctx"]) == (2, 512)


def test_a_server_killed_between_decisions_is_a_failed_connection(managed: LlamaCpp) -> None:
    assert managed.decide(noul()).ok
    os.kill(pid_of(managed), signal.SIGKILL)
    decision = managed.decide(noul())
    assert (decision.ok, decision.error, decision.status_code) == (False, "connection_failed", None)
    assert managed.decide(noul()).error == "connection_failed"


def test_a_server_killed_during_a_decision_is_a_failed_connection(managed: LlamaCpp) -> None:
    assert managed.decide(noul()).ok
    pid = pid_of(managed)
    decisions: list[Decision] = []
    os.kill(pid, signal.SIGSTOP)
    asking = threading.Thread(target=lambda: decisions.append(managed.decide(noul())))
    asking.start()
    time.sleep(0.2)
    os.kill(pid, signal.SIGKILL)
    asking.join(60)
    assert [decision.error for decision in decisions] == ["connection_failed"]


def test_a_server_that_stops_answering_is_a_timeout(tiny_gguf: Path, tmp_path: Path) -> None:
    settings = backend_settings(gguf=str(tiny_gguf), request_timeout_s=2.0)
    backend = LlamaCpp(settings, model_identity()).open(tmp_path)
    pid = pid_of(backend)
    assert backend.decide(noul()).ok
    stop(pid)
    assert backend.decide(noul()).error == "timeout"
    # Stopped, it ignores the polite request to end, so this is the other one.
    started = time.monotonic()
    backend.close()
    assert time.monotonic() - started < 30
    assert not alive(pid)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_us(tiny_gguf: Path, tmp_path: Path, end: signal.Signals) -> None:
    with holder(tiny_gguf, tmp_path) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert alive(pid)
        process.send_signal(end)
        process.wait(60)
        assert gone(pid)


def test_a_terminal_s_ctrl_c_does_not_reach_it(managed: LlamaCpp) -> None:
    assert os.getsid(pid_of(managed)) != os.getsid(0)


def test_it_outlives_the_thread_that_started_it(tiny_gguf: Path, tmp_path: Path) -> None:
    backend = LlamaCpp(backend_settings(gguf=str(tiny_gguf)), model_identity())
    opening = threading.Thread(target=lambda: backend.open(tmp_path))
    opening.start()
    opening.join()
    time.sleep(0.2)
    assert backend.decide(noul()).ok
    backend.close()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "failed to read magic"),
        (b"hello, world", "invalid magic"),
        (None, "exceeds remaining"),
    ],
    ids=["empty", "no GGUF", "cut off"],
)
def test_a_broken_file_is_refused_with_the_server_s_reason(
    tiny_gguf: Path, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(tiny_gguf.read_bytes()[:3000] if content is None else content)
    backend = LlamaCpp(backend_settings(gguf=str(broken)), model_identity())
    with pytest.raises(InputError) as caught:
        backend.open(tmp_path)
    message = str(caught.value)
    assert message.startswith("backend.server: the server for broken.gguf ended while starting: ")
    assert reason in message
    assert "\n" not in message
    assert backend.server_pid is None


def test_a_server_that_takes_too_long_is_refused_and_ended(tiny_gguf: Path, tmp_path: Path) -> None:
    backend = LlamaCpp(
        backend_settings(gguf=str(tiny_gguf), start_timeout_s=0.01), model_identity()
    )
    with pytest.raises(InputError, match=r"start_timeout_s: tiny\.gguf was not loaded within"):
        backend.open(tmp_path)
    assert backend.server_pid is None


@pytest.mark.usefixtures("tiny_gguf")
@pytest.mark.parametrize(
    ("thinking", "end"),
    [(False, "<think>\n\n</think>\n\n"), (True, "<think>\n</think>\n\n")],
    ids=["switched off", "left on"],
)
def test_a_thinking_model_answers_after_a_closed_thought(
    tmp_path: Path, thinking: bool, end: str
) -> None:
    from tests.support.tiny_gguf import THINKING, write_tiny_gguf

    gguf = write_tiny_gguf(tmp_path / "thinking.gguf", template=THINKING)
    settings = backend_settings(gguf=str(gguf))
    template = settings.template.model_copy(update={"kwargs": {"enable_thinking": thinking}})
    backend = LlamaCpp(settings.model_copy(update={"template": template}), model_identity())
    decision = backend.open(tmp_path).decide(noul())
    backend.close()
    assert decision.ok
    assert decision.request["sent"]["body"]["prompt"].endswith(f"assistant\n{end}")


def stop(pid: int) -> None:
    """Stop a process and wait for it: until the last thread stands, one may still answer."""
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + 10
    while any(state(thread) != "T" for thread in Path(f"/proc/{pid}/task").iterdir()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def state(thread: Path) -> str:
    """The letter that Linux has for what a thread is doing."""
    return (thread / "stat").read_text().rpartition(")")[2].split()[0]


def holder(gguf: Path, directory: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.live.holder", str(gguf), str(directory)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
