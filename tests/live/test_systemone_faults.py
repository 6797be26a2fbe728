"""A System One service with every fault on demand: what is recorded, and that it is asked once."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jevexp.backends.systemone import SystemOne
from jevexp.core.record import Record
from jevexp.harness.runner import RunContext, Runner, Tariff
from jevexp.harness.stops import StopReason
from jevexp.ledger.file import FileLedger
from jevexp.store import RunDirectory
from tests.contract.questions import described, levels
from tests.support.cli import jevexp, only_run
from tests.support.llama import model_identity
from tests.support.systemone import settings
from tests.support.tasks import task

mock = pytest.importorskip("jevcompat.mock", reason="jevcompat is not installed")
pytestmark = pytest.mark.live

MODEL = "jev-latest"
KEY = "sk-mock-1234567890"


def described_by(description: Any) -> dict[str, Any]:
    """A choice whose first label is described by something that is no text."""
    question = {
        "type": "choice",
        "instructions": "Which?",
        "criteria": {"a": description, "b": "B"},
    }
    return {"question": question, "labels": ["a", "b"], "expected": "a"}


TASKS = [
    task("noul", id="noul"),
    task("choice", id="choice"),
    task("score", id="score"),
    task("noul", id="list", state=["a", {"b": 1}]),
    task("choice", id="accents", **described("größe", "café")),
    task("choice", id="null", **described_by(None)),
    task("choice", id="structured", **described_by({"text": "A"})),
    task("choice", id="65 labels", **described(*(f"label {n}" for n in range(65)))),
    levels(6, id="6 levels"),
    task("choice", id="no criteria", question={"type": "choice", "instructions": "Which?"}),
]
IDS = [task.id for task in TASKS]
NOULS, SCORES = ("noul", "list"), ("score", "6 levels")
CHOICES = ("choice", "accents", "null", "structured", "65 labels")
FINE = dict.fromkeys(IDS, "valid") | {"no criteria": "http_error 422"}

# What differs from FINE under a fault. The other faults are about what is never sent or never
# read: ids, several questions, confidences, content types, error messages.
DIFFERENT: dict[str, dict[str, str]] = {
    "wrong-route": dict.fromkeys(IDS, "http_error 404"),
    "reject-jev-latest": dict.fromkeys(IDS[:-1], "http_error 404"),
    "xssi-200": dict.fromkeys(IDS[:-1], "bad_response 200"),
    "nan": dict.fromkeys(IDS[:-1], "bad_response 200"),
    "extra-answer": dict.fromkeys(IDS[:-1], "bad_answer_id 200"),
    "boolean-type": dict.fromkeys(NOULS, "bad_answer_type 200"),
    "noul-range": dict.fromkeys(NOULS, "bad_answer_number 200"),
    "choice-key-case": {"choice": "bad_answer_labels 200"},
    "nfd-keys": {"accents": "bad_answer_labels 200"},
    "choice-sum": dict.fromkeys(CHOICES, "invalid"),
    "score-no-legend": dict.fromkeys(SCORES, "bad_answer_legend 200"),
    "legend-1-based": dict.fromkeys(SCORES, "bad_answer_legend 200"),
    "score-keys-1-based": dict.fromkeys(SCORES, "bad_answer_labels 200"),
    "score-sum": dict.fromkeys(SCORES, "invalid"),
    "reject-array-state": {"list": "http_error 422"},
    "no-null-description": {"null": "http_error 422"},
    "string-only-text": {"structured": "http_error 422"},
    "cap-64": {"65 labels": "http_error 422"},
    "cap-5-levels": {"6 levels": "http_error 422"},
    "validation-400": {"no criteria": "http_error 400"},
}


@dataclass
class Service:
    """The mock, and what it does wrong; it is one for all tests, as ending it takes a while."""

    url: str
    config: Any

    def fault(self, *faults: str, key: str | None = None, busy_every: int = 0) -> None:
        self.config.faults = frozenset(faults)
        self.config.key = key
        self.config.busy_every = busy_every
        self.config.requests = 0

    @property
    def requests(self) -> int:
        found: int = self.config.requests
        return found


@pytest.fixture(scope="module")
def _running() -> Iterator[Service]:
    config = mock.MockConfig()
    with mock.Running(config) as running:
        yield Service(running.url, config)


@pytest.fixture
def service(_running: Service) -> Service:
    _running.fault()
    return _running


@dataclass(frozen=True)
class Done:
    """What each task came to, and why its run ended."""

    records: list[Record]
    stops: list[StopReason | None]
    directory: RunDirectory


def ask_all(service: Service, folder: Path, **fields: Any) -> Done:
    """Each task in a run of its own, as failures in a row would end a longer one."""
    done = Done([], [], RunDirectory.create(folder / "run"))
    backend = SystemOne(settings(service.url, **fields), model_identity()).open(folder)
    with FileLedger(folder / "ledger.jsonl", 1.0) as ledger:
        for one in TASKS:
            runner = Runner(
                RunContext(
                    backend,
                    ledger,
                    done.directory,
                    model=MODEL,
                    tariff=Tariff(0, 0),
                    reserve_usd=0.02,
                )
            )
            done.stops.append(runner.run([one], done.records.append).stop)
    backend.close()
    done.directory.close()
    return done


def outcome(record: Record) -> str:
    if not record.ok:
        return f"{record.error} {record.status_code}"
    return "valid" if record.strict_valid else "invalid"


def answered(directory: RunDirectory, record: Record) -> dict[str, float]:
    """The numbers in the body that came, by label."""
    raws = [path.read_bytes() for path in directory.raw.iterdir()]
    (raw,) = [raw for raw in raws if hashlib.sha256(raw).hexdigest() == record.raw_sha256]
    answer = json.loads(raw)["response"]["body"]["answers"]["decision"]
    if "noul" in answer:
        return {"no": 1 - answer["noul"], "yes": answer["noul"]}
    found: dict[str, float] = answer["probabilities"]
    return found


def test_the_table_is_about_faults_that_exist() -> None:
    assert len(mock.FAULTS) >= 47
    assert set(DIFFERENT) <= set(mock.FAULTS)


@pytest.mark.parametrize("fault", [None, *mock.FAULTS])
def test_a_fault_is_recorded_as_what_it_is(
    service: Service, fault: str | None, tmp_path: Path
) -> None:
    service.fault(*([fault] if fault else []))
    done = ask_all(service, tmp_path)
    found = {record.task_id: outcome(record) for record in done.records}
    assert found == FINE | DIFFERENT.get(fault or "", {})
    # One request a task, whatever came back; the mock does not count what it has no route for.
    assert service.requests == (0 if fault == "wrong-route" else len(TASKS))
    for record in done.records:
        if record.ok:
            assert record.probs_as_returned == answered(done.directory, record)
            assert record.model == "jevcompat-mock-0.1"
        else:
            assert (record.probs, record.probs_as_returned) == (None, None)
            assert record.correct is False


@pytest.mark.parametrize(("fault", "kind"), [("no-usage", type(None)), ("float-usage", float)])
def test_missing_usage_is_null_and_odd_usage_is_as_reported(
    service: Service, fault: str, kind: type, tmp_path: Path
) -> None:
    service.fault(fault)
    usage = ask_all(service, tmp_path).records[0].usage
    assert type(usage["input_tokens"]) is type(usage["output_tokens"]) is kind


@pytest.mark.parametrize(
    ("faults", "key", "status"),
    [
        ((), KEY, 200),
        ((), "sk-another-1234567890", 401),
        ((), None, 403),
        (("auth-x-api-key",), KEY, 403),
        (("auth-plain",), None, 401),
        (("auth-invalid-403-text",), "sk-another-1234567890", 401),
        (("text-errors",), None, 403),
    ],
)
def test_a_refused_key_ends_the_run(
    service: Service,
    faults: tuple[str, ...],
    key: str | None,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MOCK_KEY", key or "")
    service.fault(*faults, key=KEY)
    done = ask_all(service, tmp_path, key_env="MOCK_KEY" if key else None)
    assert done.records[0].status_code == status
    assert done.records[0].ok is (status == 200)
    assert done.stops[0] is (None if status == 200 else StopReason.ACCESS_REFUSED)


def test_a_key_that_is_not_wanted_may_be_refused(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOCK_KEY", KEY)
    service.fault("auth-rejects-header")
    done = ask_all(service, tmp_path, key_env="MOCK_KEY")
    assert (done.records[0].error, done.records[0].status_code) == ("http_error", 401)
    assert done.stops[0] is StopReason.ACCESS_REFUSED


def run_on(service: Service, workplace: Path) -> tuple[int, dict[str, Any]]:
    """Exit status and manifest of a run from the command line."""
    done = jevexp(
        "dataset=demo",
        "tracking=none",
        "backend=systemone",
        f"backend.base_url={service.url}",
        "backend.key_env=null",
        "model=jev_latest",
        cwd=workplace,
    )
    manifest = json.loads((only_run(workplace / "outputs") / "manifest.json").read_text())
    return done.status, manifest


def test_too_many_requests_end_the_run_after_one(service: Service, workplace: Path) -> None:
    service.fault(busy_every=1)
    status, manifest = run_on(service, workplace)
    assert status == 1
    assert manifest["stop_reason"] == "rate_limited"
    assert manifest["counts"]["attempted"] == service.requests == 1


def test_three_bad_answers_in_a_row_end_the_run(service: Service, workplace: Path) -> None:
    service.fault("nan")
    status, manifest = run_on(service, workplace)
    assert status == 1
    assert manifest["stop_reason"] == "failures_in_a_row"
    assert manifest["counts"]["attempted"] == service.requests == 3


def test_a_whole_run_asks_once_a_task(service: Service, workplace: Path) -> None:
    status, manifest = run_on(service, workplace)
    assert status == 0
    assert manifest["counts"]["valid"] == service.requests == 48
    assert manifest["model"]["requested"] == "jev-latest"
    assert manifest["model"]["resolved"] == ["jevcompat-mock-0.1"]
    assert manifest["backend"]["description"]["models"] == ["jev-latest", "mock"]
