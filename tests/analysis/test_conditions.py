"""What is said about the conditions under which runs were made."""

from pathlib import Path
from typing import Any

from jevexp.analysis.conditions import latency_warnings, remarks
from jevexp.store import RunStatus
from tests.analysis.made import finished
from tests.support.runs import manifest, noul_tasks

TASKS = noul_tasks(4)
LATER = {"started": "2026-03-01T11:00:00.000Z", "finished": "2026-03-01T11:00:30.000Z"}


def warnings(path: Path, first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    runs = [finished(path / "a", TASKS, **first), finished(path / "b", TASKS, **second)]
    return latency_warnings(runs, 0, 1)


def served(**description: Any) -> dict[str, Any]:
    return {"backend": {"name": "llama_cpp", "description": description}}


def test_what_differs_is_said(tmp_path: Path) -> None:
    first = finished(tmp_path / "a", TASKS)
    second = finished(
        tmp_path / "b",
        TASKS,
        status=RunStatus.INCOMPLETE,
        harness={"name": "upstream"},
        concurrency=4,
        software=manifest(tmp_path).software.model_dump() | {"platform": "macOS"},
        fingerprint={"version": 1, "value": "12ab", "inputs": {}},
        identity={"verdict": "contradicted", "fields": {}, "findings": [], "notes": []},
    )

    assert remarks(first, first) == []
    assert remarks(first, second) == [
        "the candidate is incomplete",
        "the identity of the candidate is contradicted",
        "fingerprints differ: none, then 12ab",
        "harnesses differ: native, then upstream",
        "concurrency differs: 1, then 4",
        "machines differ: Linux, then macOS",
    ]


def test_runs_one_after_the_other_on_one_server_are_comparable(tmp_path: Path) -> None:
    assert warnings(tmp_path, {}, LATER) == []


def test_runs_at_the_same_time_on_one_host_disturbed_each_other(tmp_path: Path) -> None:
    assert warnings(tmp_path, {}, {}) == [
        "the baseline ran at the same time as b on one host",
        "the candidate ran at the same time as a on one host",
    ]


def test_runs_at_the_same_time_on_two_hosts_did_not(tmp_path: Path) -> None:
    said = warnings(
        tmp_path, served(base_url="http://one:8080"), served(base_url="http://two:8080")
    )

    assert said == ["hosts of the server differ: one, then two"]


def test_a_third_run_at_the_same_time_is_named(tmp_path: Path) -> None:
    runs = [
        finished(tmp_path / "a", TASKS),
        finished(tmp_path / "b", TASKS, **LATER),
        finished(tmp_path / "c", TASKS, **LATER),
        finished(tmp_path / "d", TASKS, **LATER),
    ]

    assert latency_warnings(runs, 0, 1) == [
        "the candidate ran at the same time as c and 1 more on one host"
    ]


def test_servers_that_were_started_differently_are_named(tmp_path: Path) -> None:
    resolved = manifest(tmp_path).config.resolved
    more = resolved | {"backend": {"server": {"threads": 8, "gpu_layers": 0}}}
    config = manifest(tmp_path).config.model_dump() | {"resolved": more}
    said = warnings(
        tmp_path,
        served(managed=True, total_slots=1, n_ctx=4096, cache_type_k="f16"),
        served(managed=True, total_slots=4, n_ctx=4096, cache_type_k="q8_0")
        | LATER
        | {"concurrency": 4, "config": config},
    )

    assert said == [
        "concurrency differs: 1, then 4",
        "slot counts differ: 1, then 4",
        "cache types of keys differ: f16, then q8_0",
        "threads differ: unknown, then 8",
        "GPU layers differ: unknown, then 0",
    ]


def test_other_kinds_of_backend_are_one_line(tmp_path: Path) -> None:
    said = warnings(
        tmp_path, served(kind="fake"), served(kind="llama_cpp", total_slots=1, n_ctx=4096) | LATER
    )

    assert said == ["kinds of backend differ: fake, then llama_cpp"]


def test_a_resumed_run_has_several_sessions(tmp_path: Path) -> None:
    resumed: dict[str, Any] = {
        "run": "z", "path": "z", "manifest_sha256": "", "checksums_sha256": None,
        "adopted": [], "recovered": [], "charged_usd": 0.0, "sessions": [],
    }  # fmt: skip

    assert warnings(tmp_path, {}, LATER | {"resumed": resumed}) == [
        "the candidate was resumed: its seconds are from several sessions"
    ]


def test_what_a_server_said_may_be_anything(tmp_path: Path) -> None:
    odd = served(base_url="http://[", features=["cache_prompt"], managed=True)

    said = warnings(tmp_path, {"started": "2026-99-99T10:00:00.000Z"}, odd)

    assert said == ["hosts of the server differ: here, then http://["]


def test_how_a_side_was_asked_is_said_where_a_reader_has_to_know(tmp_path: Path) -> None:
    warned = served(warnings=["isolation=none: an answer may depend on the tasks before it"])
    runs = [finished(tmp_path / "a", TASKS, **warned), finished(tmp_path / "b", TASKS, **served())]

    line = "isolation=none: an answer may depend on the tasks before it"
    assert remarks(*runs) == [f"the baseline: {line}"]
    assert remarks(*runs[::-1]) == [f"the candidate: {line}"]
    # What a server said may be anything.
    odd = finished(tmp_path / "c", TASKS, **served(warnings="none"))
    assert remarks(runs[1], odd) == []
