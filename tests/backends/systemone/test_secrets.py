"""A key in the environment reaches the service and nothing else, also when that repeats it."""

from pathlib import Path
from typing import Any

from tests.support.cli import jevexp
from tests.support.scripted_llama import Answer, ScriptedLlama
from tests.support.systemone import ENDPOINT, envelope, respond

KEY = "sk-do-not-write-this-1234567890"
ORG = "org-do-not-write-this-either"


def places(workplace: Path, *secrets: str) -> list[str]:
    """Every file that holds one of the secrets, the tracking database included."""
    files = [path for path in workplace.rglob("*") if path.is_file()]
    assert any(path.name == "mlflow.db" for path in files)
    assert any(path.name == "results.jsonl" for path in files)
    return [
        str(path)
        for path in files
        if any(secret.encode() in path.read_bytes() for secret in secrets)
    ]


def repeating(body: Any) -> Answer:
    """A good answer, with everything that was sent in it."""
    answer = respond(body).body | {"x_request": {"authorization": f"Bearer {KEY}", "x-org": ORG}}
    return Answer(answer, headers={"X-Authorization": f"Bearer {KEY}"})


def failing(body: Any) -> Answer:
    return Answer({"detail": f"no such key: {KEY}", "org": ORG}, status=500)


def naming(body: Any) -> Answer:
    return Answer(envelope({"type": "noul", "noul": 0.5}) | {"model": KEY})


def plain(body: Any) -> Answer:
    return Answer(f"<h1>Bearer {KEY} of {ORG}</h1>".encode(), status=502)


def test_no_file_and_no_line_holds_a_secret(service: ScriptedLlama, workplace: Path) -> None:
    # Never three failures in a row, which would end the run.
    behaviours = [respond, repeating, failing, respond, naming, plain, respond]
    left = iter(behaviours)

    def in_turn(body: Any) -> Answer:
        return next(left)(body)

    service.answers |= {
        ENDPOINT: in_turn,
        "/health": Answer({"model": KEY, "version": ORG}),
        "/v1/models": Answer({"models": [{"name": f"Bearer {KEY}"}]}),
    }
    done = jevexp(
        "dataset=demo", "backend=systemone", f"backend.base_url={service.url}", "model=jev_latest",
        "+backend.header_env.X-Org=THE_ORG", f"caps.limit={len(behaviours)}",
        "tracking.raw_evidence=true", cwd=workplace, TYPESAFE_API_KEY=KEY, THE_ORG=ORG,
    )  # fmt: skip

    asked = [request for request in service.seen if request.path == ENDPOINT]
    assert len(asked) == len(behaviours), done.out + done.err
    for request in asked:
        assert request.headers["Authorization"] == f"Bearer {KEY}"
        assert request.headers["X-Org"] == ORG
    assert done.status == 1
    assert "incomplete: 3 of 7 tasks" in done.out
    assert places(workplace, KEY, ORG) == []
    for secret in (KEY, ORG):
        assert secret not in done.out + done.err


def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(
    service: ScriptedLlama, workplace: Path
) -> None:
    done = jevexp(
        "dataset=demo", "backend=systemone", f"backend.base_url={service.url}", "model=jev_latest",
        cwd=workplace, TYPESAFE_API_KEY="sk with spaces 123",
    )  # fmt: skip
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert "spaces" not in done.out + done.err
    assert service.seen == []
    assert list(workplace.iterdir()) == []
