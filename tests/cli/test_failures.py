"""How a run ends that a service gave no answers: the cause, a raw file, and what can be done."""

import json
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Finished, jevexp
from tests.support.raw_server import self_signed
from tests.support.scripted_llama import Answer, ScriptedLlama
from tests.support.systemone import ENDPOINT, respond, scripted_systemone

OFF = "go on with it"
KEY = "sk-0123456789abcdef"


@pytest.fixture
def server() -> Iterator[ScriptedLlama]:
    with scripted_systemone() as running:
        yield running


def to(url: str) -> tuple[str, ...]:
    """Six demo tasks, put to the service at a URL."""
    return (
        "dataset=demo", "backend=systemone", "model=unclaimed", "model.alias=scripted-1.0",
        "backend.key_env=null", f"backend.base_url={url}", "caps.limit=6", "tracking=none",
    )  # fmt: skip


def run(workplace: Path, server: ScriptedLlama, *overrides: str, **environment: str) -> Finished:
    """A run over six demo tasks that ends with a failure."""
    done = jevexp(*to(server.url), *overrides, cwd=workplace, **environment)
    assert done.status == 1, done.err
    return done


def told(done: Finished) -> list[str]:
    """The lines on failures, without the raw files that they name, which have to be there."""
    lines = [line.strip() for line in done.out.splitlines() if line.startswith("  ")]
    begin = next(at for at, line in enumerate(lines) if " × " in line)
    return [line for line in lines[begin:] if not line.startswith("see ")]


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (
            Answer({"error": {"message": "Insufficient credits", "code": 402}}, status=402),
            ["3 × http_error (HTTP 402: Insufficient credits)"],
        ),
        (
            Answer({"detail": "Not Found"}, status=404),
            [
                "3 × http_error (HTTP 404: Not Found)",
                "its API is not at {url}/v1/systemone: set backend.base_url to the address up to "
                "/v1/systemone",
            ],
        ),
        (
            Answer({"error": {"message": "model not found"}}, status=404),
            [
                "3 × http_error (HTTP 404: model not found)",
                "set model.alias to a model that it has",
            ],
        ),
        (
            Answer(b"<!DOCTYPE html><title>Sign\n in</title>"),
            [
                "3 × bad_response (HTTP 200: Sign in)",
                "its API is not at {url}/v1/systemone: set backend.base_url to the address up to "
                "/v1/systemone",
            ],
        ),
        (
            Answer({}, status=307, headers={"Location": "https://api.test/x/v1/systemone"}),
            [
                "3 × http_error (HTTP 307)",
                "it redirects to api.test, and redirects are not followed; set "
                "backend.base_url=https://api.test/x if you trust it",
            ],
        ),
        (
            Answer({}, status=302, headers={"Location": "/login"}),
            [
                "3 × http_error (HTTP 302)",
                "it redirects to 127.0.0.1, and redirects are not followed",
            ],
        ),
        (
            Answer({"error": {"message": "no", "code": 500}}),
            ["3 × error_body (HTTP 200: no)"],
        ),
        (
            Answer({"error": {"message": "slow down", "code": 429}}, headers={"Retry-After": "7"}),
            [
                "1 × error_body_429 (HTTP 200: slow down)",
                "it asks to wait 7 s before the next request",
            ],
        ),
        (
            Answer({"error": "no key"}, status=401),
            [
                "1 × http_error (HTTP 401: no key)",
                "set backend.key_env to the environment variable that holds its API key",
            ],
        ),
        (
            Answer({"error": {"message": "Start it with --decisions"}}, status=501),
            [
                "3 × http_error (HTTP 501: Start it with --decisions)",
                "that server cannot do this: start or choose one with the options that its words "
                "name",
            ],
        ),
        (
            Answer(b"\x8b\x7f\x80", headers={"Content-Encoding": "br"}),
            [
                "3 × bad_response (HTTP 200)",
                "it packs answers as br, which nobody asked for: turn that off there",
            ],
        ),
        (Answer({"error": "\x1b[2J" + "x" * 200}, status=500), None),
    ],
    ids=["402", "404", "model", "page", "redirect", "login", "error body", "429 in a body", "401",
         "501", "packed", "hostile"],
)  # fmt: skip
def test_a_cause_is_told(
    workplace: Path, server: ScriptedLlama, answer: Answer, lines: list[str] | None
) -> None:
    server.answers[ENDPOINT] = answer
    done = run(workplace, server)
    if lines is None:
        lines = ["3 × http_error (HTTP 500: \\x1b[2J" + "x" * 72 + "…)"]
    assert told(done) == [line.format(url=server.url) for line in lines]
    (raw,) = re.findall(r"^ *see (.*)$", done.out, re.MULTILINE)
    assert json.loads((workplace / raw).read_bytes())["http_status"] == answer.status


@pytest.mark.parametrize(
    ("answer", "advised"),
    [
        (Answer({"error": "overloaded"}, status=529), True),
        (Answer({"error": "no credits"}, status=402), True),
        (Answer({"error": "slow down"}, status=429), True),
        (Answer(drop=True), True),
        (Answer({}, status=404), False),
        (Answer({}, status=501), False),
        (Answer({}, status=401), False),
        (Answer({}, status=308, headers={"Location": "/x"}), False),
        (Answer(b"<html>"), False),
    ],
)
def test_going_on_is_advised_where_it_can_work(
    workplace: Path, server: ScriptedLlama, answer: Answer, advised: bool
) -> None:
    server.answers[ENDPOINT] = answer
    assert (OFF in run(workplace, server).out) is advised


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/systemone"])
def test_an_address_with_a_part_of_the_path(
    workplace: Path, server: ScriptedLlama, end: str
) -> None:
    server.answers[ENDPOINT] = Answer({"detail": "Not Found"}, status=404)
    done = run(workplace, server, f"backend.base_url={server.url}{end}")
    assert told(done)[1].startswith(f"its API is not at {server.url}{ENDPOINT}: ")


def after(n_good: int, then: Any) -> Any:
    """Good answers, and then something else."""
    asked = count()

    def behave(body: Any) -> Answer:
        if next(asked) < n_good:
            return respond(body)
        return then if isinstance(then, Answer) else then(body)

    return behave


@pytest.mark.parametrize(
    ("answer", "advised"), [(Answer({}, status=401), True), (Answer({}, status=501), False)]
)
def test_with_answers_to_keep_another_key_is_a_reason_to_go_on(
    workplace: Path, server: ScriptedLlama, answer: Answer, advised: bool
) -> None:
    server.answers[ENDPOINT] = after(2, answer)
    assert (OFF in run(workplace, server).out) is advised


def test_a_model_renamed_in_mid_run(workplace: Path, server: ScriptedLlama) -> None:
    def renamed(body: Any) -> Answer:
        answer = respond(body)
        return Answer(answer.body | {"model": "scripted-1.1"})

    server.answers[ENDPOINT] = after(3, renamed)
    out = run(workplace, server).out
    expected = "scripted-1.0 answered first, then scripted-1.1 answered: start a new run with "
    assert f"  {expected}model.alias=scripted-1.1\n" in out
    assert OFF not in out


def test_a_model_name_that_no_shell_should_see(workplace: Path, server: ScriptedLlama) -> None:
    def renamed(body: Any) -> Answer:
        return Answer(respond(body).body | {"model": "x; rm -r /"})

    server.answers[ENDPOINT] = after(3, renamed)
    assert "model.alias=NAME\n" in run(workplace, server).out


def test_a_choice_without_options(workplace: Path, server: ScriptedLlama) -> None:
    tasks = [
        {
            "id": f"t{n}", "family": "f", "state": "s", "labels": ["a", "b"], "expected": "a",
            "split": "public", "question": {"type": "choice", "instructions": "?"},
        }
        for n in range(3)
    ]  # fmt: skip
    (workplace / "t.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    done = run(workplace, server, "backend=openai_chat", "dataset=local", "dataset.path=t.jsonl")
    assert told(done) == [
        "3 × options_unknown",
        "the task names no options: give it criteria in the file of dataset.path",
    ]
    assert OFF not in done.out


def test_a_key_is_in_no_words(workplace: Path, server: ScriptedLlama) -> None:
    moved = {"Location": f"https://api.test/?key={KEY}"}
    server.answers[ENDPOINT] = Answer({"error": f"bad key {KEY}"}, status=307, headers=moved)
    done = run(workplace, server, "backend.key_env=SERVICE_KEY", SERVICE_KEY=KEY)
    assert told(done)[0] == "3 × http_error (HTTP 307: bad key [key])"
    assert KEY not in done.out + done.err
    assert all(KEY.encode() not in file.read_bytes() for file in workplace.rglob("raw/*"))


def refusal(workplace: Path, url: str, **environment: str) -> str:
    """The one line about a service that cannot be used."""
    done = jevexp(*to(url), cwd=workplace, **environment)
    assert done.status == 2
    assert not (workplace / "outputs").exists()
    return done.err.rstrip("\n")


def test_a_self_signed_certificate_on_this_machine(workplace: Path, tmp_path: Path) -> None:
    tls, certificate = self_signed(tmp_path)
    with scripted_systemone(tls) as server:
        refused = refusal(workplace, server.url)
        done = jevexp(*to(server.url), cwd=workplace, SSL_CERT_FILE=str(certificate))
    assert (done.status, done.err) == (0, "")
    assert refused == (
        f"error: backend.base_url: {server.url} is not usable: its certificate is not trusted here "
        "(self-signed certificate); export SSL_CERT_FILE=FILE with the certificate of who signed "
        "its own, which is its own where it is self-signed"
    )


def test_a_certificate_for_another_name(workplace: Path, tmp_path: Path) -> None:
    tls, certificate = self_signed(tmp_path)
    with scripted_systemone(tls) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        refused = refusal(workplace, url, SSL_CERT_FILE=str(certificate))
    assert refused.endswith("; set backend.base_url to a name that its certificate is for")


def test_https_to_a_port_without_tls(workplace: Path, server: ScriptedLlama) -> None:
    refused = refusal(workplace, server.url.replace("http:", "https:"))
    assert "is not usable: TLS fails (" in refused
    assert refused.endswith(f"); set backend.base_url={server.url} if it speaks plain http")


def test_plain_http_to_a_port_with_tls(workplace: Path, tmp_path: Path) -> None:
    tls, _ = self_signed(tmp_path)
    with scripted_systemone(tls) as server:
        refused = refusal(workplace, server.url.replace("https:", "http:"))
    assert "is not usable: it closed the connection without a whole answer; " in refused
    assert refused.endswith(f"; set backend.base_url={server.url} if it speaks https")


@pytest.mark.parametrize("url", ["http://0.0.0.0:8080", '"http://[::]:8080"'])
def test_the_address_that_a_server_listens_on(workplace: Path, url: str) -> None:
    refused = refusal(workplace, url)
    assert "backend.base_url: a server listens on that host" in refused
    assert "write 127.0.0.1 for one on this machine" in refused


def rounded(sums: list[float]) -> Any:
    """Answers to choices with two decimals that come to these sums, one after the other."""
    following = iter(sums)

    def behave(body: Any) -> Answer:
        answer = respond(body).body
        decision = answer["answers"]["decision"]
        if decision["type"] != "noul":
            labels = list(decision["probabilities"])
            total = next(following, 1.0)
            low = [0.01 + 0.02 * at for at in range(len(labels) - 1)]
            shares = [*low, round(total - sum(low), 2)]
            decision["probabilities"] = dict(zip(labels, shares, strict=True))
        return Answer(answer)

    return behave


def test_rounded_probabilities_are_one_kind_with_the_limit_that_decided(
    workplace: Path, server: ScriptedLlama
) -> None:
    server.answers[ENDPOINT] = rounded([0.97, 0.96, 1.04, 0.99])
    done = run(workplace, server, "caps.limit=24")
    assert told(done) == [
        "3 × probabilities that sum to 0.96 to 1.04, and up to 0.02 off 1 is accepted"
    ]
    assert "warning: the service rounds probabilities to two decimals" in done.out


def test_probabilities_that_are_not_rounded_are_no_warning(
    workplace: Path, server: ScriptedLlama
) -> None:
    server.answers[ENDPOINT] = after(4, Answer({}, status=503))
    assert "rounds" not in run(workplace, server).out
