"""Replaying an earlier run: the same records, from evidence that is what the run left."""

import json
from pathlib import Path
from typing import Any

import pytest

from jevexp.backends.replay import Replay
from jevexp.core.decision import Decision, ProbsSource, Request
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.errors import InputError
from tests.harness.test_conformance import SCENARIOS, TASKS, FakeClock, Scripted
from tests.support.cli import jevexp, only_run
from tests.support.compose import compose
from tests.support.provider import Provider
from tests.support.replays import ask, replay_settings
from tests.support.runs import manifest
from tests.support.tasks import answer, failure, label_only, task

NAMES = Path(__file__).parents[1] / "conformance" / "tasks.jsonl"
MINE = [task(kind, id=f"{kind} {n}", state=n) for n in range(4) for kind in ("noul", "choice")]
# What depends on the clock, on who asks, or on money; everything else has to be equal.
OWN = {"ts", "latency_s", "raw_sha256", "cost_usd", "cost_basis", "reserved_usd", "charged_usd"}


def settled(records: list[Record]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in record.line().items() if name not in OWN}
        for record in records
    ]


def replayed(source: Path, tasks: list[Task], into: Path) -> list[Record]:
    return ask(into, tasks, Replay(replay_settings(run=source)))


def described_by(path: Path, tasks_file: Path, dataset_hash: str) -> dict[str, Any]:
    """A manifest's entries that name a task file."""
    config = manifest(path).config.model_dump()
    config["resolved"]["dataset"] = {"name": "mine", "source": "local", "path": str(tasks_file)}
    dataset = manifest(path).dataset.model_dump() | {"dataset_hash": dataset_hash}
    return {"config": config, "dataset": dataset}


# Equal records


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["name"])
def test_the_same_tasks_come_to_the_same_records(scenario: dict[str, Any], tmp_path: Path) -> None:
    tasks = [TASKS[name] for name in scenario["task_ids"]]
    source = tmp_path / "source"
    vectors = json.loads((NAMES.parent / "scenarios.json").read_text())
    first = ask(
        source,
        tasks,
        Scripted(scenario["answers"], scenario["cost_basis"], FakeClock()),
        **described_by(source, NAMES, vectors["dataset_hash_of_tasks_jsonl"]),
    )
    again = replayed(source, tasks[: len(first)], tmp_path / "again")
    assert settled(again) == settled(first)
    # A replay holds all that was asked, whatever its source did: it can be replayed itself.
    third = replayed(tmp_path / "again", tasks[: len(first)], tmp_path / "third")
    assert settled(third) == settled(first)


def test_invalid_answers_and_failures_come_as_they_came(tmp_path: Path) -> None:
    nan, inf = float("nan"), float("inf")
    steps = [
        answer({"no": nan, "yes": 0.5}, request={}, runtime={"off_option_mass": 0.5}),
        answer({"billing": "nan"}, usage={"input_tokens": 3}),
        answer({"no": 0.5, "yes": inf}, status_code=200),
        label_only("shipping"),
        label_only(None),
        label_only("elsewhere"),
        answer(None, probs_source=ProbsSource.VERBALIZED, model="m-2"),
        KeyError("secret"),
    ]

    def step(request: Request) -> Decision:
        given = steps[len(provider.received) - 1]
        if isinstance(given, BaseException):
            raise given
        return Decision(**{field: getattr(given, field) for field in Decision.__slots__}
                        | {"request": request.wire()})  # fmt: skip

    provider = Provider(step)
    tasks_file = tmp_path / "tasks.jsonl"
    tasks_file.write_text("".join(f"{json.dumps(one.canonical())}\n" for one in MINE))
    hashed = compose("dataset=local", f"dataset.path='{tasks_file}'").dataset
    from jevexp.datasets import load_dataset

    source = tmp_path / "source"
    entries = described_by(source, tasks_file, load_dataset(hashed).dataset_hash)
    first = ask(source, MINE, provider, **entries)
    assert len(first) == len(steps)
    assert settled(replayed(source, MINE, tmp_path / "again")) == settled(first)


def test_answers_are_found_by_what_is_asked_and_not_by_order_or_id(tmp_path: Path) -> None:
    provider = Provider(
        lambda request: answer({str(request.state): 1.0}, request=request.wire(), response={})
    )
    ask(tmp_path / "source", MINE, provider)
    renamed = [one.model_copy(update={"id": f"new {one.id}"}) for one in reversed(MINE)]
    again = replayed(tmp_path / "source", renamed, tmp_path / "again")
    assert [record.probs_as_returned for record in again] == [
        {str(one.state): 1.0} for one in renamed
    ]


def test_another_gold_label_scores_the_same_answers_anew(tmp_path: Path) -> None:
    of = task("noul")
    provider = Provider(
        lambda request: answer({"no": 0.9, "yes": 0.1}, request=request.wire(), response={})
    )
    (first,) = ask(tmp_path / "source", [of], provider)
    corrected = of.model_copy(update={"expected": "no"})
    (again,) = replayed(tmp_path / "source", [corrected], tmp_path / "again")
    assert (first.correct, again.correct) == (False, True)


# What the source does not hold


def test_what_was_never_asked_is_a_failure(tmp_path: Path) -> None:
    provider = Provider(lambda request: answer({"no": 0.9, "yes": 0.1}, request=request.wire()))
    ask(tmp_path / "source", [task("noul")], provider)
    backend = Replay(replay_settings(run=tmp_path / "source"))
    for other in (
        task("noul", state="Another invoice."),
        task("noul", question={"type": "noul", "instructions": "Is it paid?"}),
        task("choice"),
    ):
        decision = backend.decide(Request.of(other, "m-1"))
        assert (decision.ok, decision.error) == (False, "not_in_source")


def test_a_question_asked_twice_gets_its_answers_in_their_order(tmp_path: Path) -> None:
    twice = [task("noul", id="a"), task("noul", id="b")]
    steps = iter([0.25, 0.75])

    def step(request: Request) -> Decision:
        p = next(steps)
        return answer({"no": 1 - p, "yes": p}, request=request.wire())

    ask(tmp_path / "source", twice, Provider(step))
    backend = Replay(replay_settings(run=tmp_path / "source"))
    request = Request.of(twice[0], "m-1")

    def three() -> list[float]:
        return [dict(backend.decide(request).probs or {})["yes"] for _ in range(3)]

    assert three() == [0.25, 0.75, 0.75]
    backend.open(tmp_path)
    assert three() == [0.25, 0.75, 0.75]


# The source as it was left


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    provider = Provider(
        lambda request: answer({"no": 0.9, "yes": 0.1}, request=request.wire(), response={"a": 1})
    )
    ask(path, [task("noul")], provider)
    return path


def why_not(path: Path) -> str:
    with pytest.raises(InputError) as refused:
        Replay(replay_settings(run=path))
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("name", ["results.jsonl", "manifest.json", "ledger.jsonl", "raw/*.json"])
def test_a_file_that_was_changed_is_refused(name: str, source: Path) -> None:
    (path,) = source.glob(name)
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    assert why_not(source).startswith(f"backend.run: {path}: was changed after the run")


def test_a_file_that_is_gone_is_refused(source: Path) -> None:
    (raw,) = source.glob("raw/*.json")
    raw.unlink()
    assert why_not(source).startswith(f"backend.run: {raw}: No such file or directory")


def seal_again(source: Path) -> None:
    from jevexp.store import RunDirectory

    (source / "checksums.sha256").unlink()
    RunDirectory(source).seal()


def test_raw_evidence_that_is_not_the_records_is_refused_also_under_new_checksums(
    source: Path,
) -> None:
    (raw,) = source.glob("raw/*.json")
    raw.write_bytes(raw.read_bytes().replace(b'"a": 1', b'"a": 2'))
    seal_again(source)
    assert "not the raw evidence of task 'noul-1'" in why_not(source)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("results.jsonl", b'{"task_id": 1}\n', "results.jsonl:1: not a record"),
        ("manifest.json", b"[]", "manifest.json: not a manifest: "),
        ("manifest.json", b"{}", "manifest.json: not a manifest"),
        ("manifest.json", b"{", "manifest.json: not a manifest: Expecting "),
    ],
)
def test_what_is_no_run_is_refused(name: str, content: bytes, said: str, source: Path) -> None:
    (source / name).write_bytes(content)
    seal_again(source)
    assert said in why_not(source)


@pytest.mark.parametrize("line", ["x", f"{'0' * 64}  ../secret", f"{'0' * 64}  /etc/passwd"])
def test_checksums_name_only_files_of_the_run(line: str, source: Path) -> None:
    (source / "checksums.sha256").write_text(f"{line}\n")
    assert why_not(source).endswith("checksums.sha256:1: not a checksum")


def test_a_record_that_the_checksums_do_not_cover_is_refused(source: Path) -> None:
    checksums = source / "checksums.sha256"
    kept = [line for line in checksums.read_text().splitlines() if "raw/" not in line]
    checksums.write_text("".join(f"{line}\n" for line in kept))
    assert why_not(source).endswith("the run's checksums do not name it")


def test_a_folder_that_is_no_run_or_a_killed_one_is_refused(tmp_path: Path) -> None:
    assert "no such folder" in why_not(tmp_path / "nothing")
    assert "a run that was killed has none" in why_not(tmp_path)


def test_tasks_that_are_needed_and_have_changed_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "source"
    # The vectors' failures keep no request, so that only the tasks say what was asked.
    ask(path, [task("noul")], Provider(failure()), **described_by(path, NAMES, "00" * 32))
    assert "the tasks have changed since the run" in why_not(path)


# What it says of itself


def test_it_names_its_source(source: Path) -> None:
    backend = Replay(replay_settings(run=source))
    assert backend.cost_basis == "replayed_no_new_cost"
    described = backend.describe()
    assert (described["kind"], described["model"]) == ("replay", "m-1")
    assert described["source"]["run"] == "source"
    assert len(described["source"]["checksums_sha256"]) == 64
    assert "fingerprint" in described["source"]


def test_several_models_answer_under_no_single_name(tmp_path: Path) -> None:
    provider = Provider(
        lambda request: answer({}, model=f"m-{request.state}", request=request.wire())
    )
    ask(tmp_path / "source", MINE, provider)
    assert Replay(replay_settings(run=tmp_path / "source")).describe()["model"] is None


def test_a_price_would_count_the_same_cost_twice() -> None:
    with pytest.raises(InputError, match=r"^pricing: a replay costs nothing; use pricing=unknown"):
        compose("backend=replay", "backend.run=x", "pricing=typesafe_jev_1_13")
    for price in ("unknown", "local"):
        assert compose("backend=replay", "backend.run=x", f"pricing={price}")


def test_there_is_exactly_one_source() -> None:
    with pytest.raises(InputError, match=r"^backend\.run: missing; give backend\.run=DIR or"):
        compose("backend=replay")
    with pytest.raises(InputError, match=r"^backend\.answers: backend\.run is given as well"):
        compose("backend=replay", "backend.run=x", "backend.answers=y")


def test_a_run_is_replayed_from_the_command_line(tmp_path: Path) -> None:
    common = ("dataset=demo", "tracking=none")
    first = jevexp(*common, "backend.mode=noise", "outputs=first", cwd=tmp_path)
    assert first.status == 0, first.out + first.err
    source = only_run(tmp_path / "first")
    again = jevexp(
        *common,
        "backend=replay",
        f"backend.run='{source}'",
        "caps=unmetered",
        "outputs=again",
        cwd=tmp_path,
    )
    assert again.status == 0, again.out + again.err
    found = only_run(tmp_path / "again")
    summaries = [json.loads((path / "summary.json").read_text()) for path in (source, found)]
    for name in ("accuracy", "brier_mean", "ece", "ordinal_mae", "model_identities"):
        assert summaries[0][name] == summaries[1][name]
    assert summaries[1]["ledger_charged_usd"] == 0.0
    said = json.loads((found / "manifest.json").read_text())
    assert said["cost_basis"] == ["replayed_no_new_cost"]
    assert said["backend"]["description"]["source"]["run"] == source.name
    assert said["backend"]["description"]["source"]["fingerprint"].startswith("jf1-")
