"""Identity from the command line, with real servers and the real Gemma 3 270M."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.live.conftest import Live, served
from tests.support.cli import Finished, jevexp, only_run
from tests.support.decision_files import write_decision
from tests.support.llama import open_server
from tests.support.proxy import proxying

pytestmark = pytest.mark.live

GEMMA = ("dataset=demo", "caps.limit=1", "backend=llama_cpp", "model=gemma3_270m_q4km")
UNTRACKED = "tracking=none"
HISTOGRAM = {"F32": 109, "Q5_0": 81, "Q4_K": 27, "Q8_0": 10, "Q6_K": 9}
SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
# The real digest with its last digit changed.
WRONG_SHA256 = SHA256[:-1] + "9"


def manifest(workplace: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (only_run(workplace / "outputs") / "manifest.json").read_text()
    )
    return found


def run_on(gemma: Live, workplace: Path, *overrides: str) -> Finished:
    return jevexp(*GEMMA, UNTRACKED, f"backend.server.base_url={gemma.url}", *overrides,
                  cwd=workplace)  # fmt: skip


def test_a_true_claim_is_confirmed_by_header_bytes_and_tensors(
    gemma: Live, workplace: Path
) -> None:
    done = run_on(gemma, workplace)

    assert done.status == 0, done.err
    assert "identity: confirmed" in done.out
    found = manifest(workplace)
    fields = found["identity"]["fields"]
    for name, value in (
        ("quantization.ftype", "Q4_K_M"),
        ("quantization.tensor_types", HISTOGRAM),
        ("weights.sha256", SHA256),
    ):
        assert fields[name]["verdict"] == "confirmed"
        assert fields[name]["declared"] == fields[name]["observed"][0]["value"] == value
    assert fields["quantization.ftype"]["observed"][0]["source"] == "file header"
    assert found["fingerprint"]["value"].startswith("jf1-")
    assert found["fingerprint"]["inputs"]["weights"] == {"sha256": SHA256}


@pytest.mark.parametrize(
    ("claim", "line"),
    [
        (
            "model.quantization.ftype=Q8_0",
            "error: identity: model.quantization.ftype: declared Q8_0, found Q4_K_M "
            "(file header, server)",
        ),
        (
            f"model.weights.sha256={WRONG_SHA256}",
            f"error: identity: model.weights.sha256: declared {WRONG_SHA256}, found {SHA256}",
        ),
    ],
)
def test_a_false_claim_is_refused_before_the_first_request(
    claim: str, line: str, gemma: Live, workplace: Path
) -> None:
    with proxying({"gemma": gemma.url}) as proxy:
        done = jevexp(
            *GEMMA, UNTRACKED, f"backend.server.base_url={proxy.url}", claim, cwd=workplace
        )

    assert done.status == 2
    assert done.err.startswith(line)
    assert "contradicted" in done.out
    assert proxy.paths() == {"/v1/models", "/props"}
    assert list(workplace.iterdir()) == []


# MLflow's database layer warns about what it uses itself.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_under_record_a_false_claim_runs_and_everything_says_so(
    gemma: Live, workplace: Path
) -> None:
    done = jevexp(
        *GEMMA,
        f"backend.server.base_url={gemma.url}",
        "model.quantization.ftype=Q8_0",
        "identity=record",
        cwd=workplace,
    )

    assert done.status == 0, done.err
    assert "identity: contradicted" in done.out
    assert manifest(workplace)["identity"]["verdict"] == "contradicted"
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{workplace}/outputs/mlflow.db")
    (run,) = client.search_runs([client.get_experiment_by_name("jevexp").experiment_id])
    assert run.data.tags["jev.identity"] == "contradicted"
    assert run.data.tags["jev.weights_sha256"] == SHA256
    assert run.data.tags["jev.ftype"] == "Q4_K_M"
    assert run.data.tags["jev.fingerprint"] == manifest(workplace)["fingerprint"]["value"]


def test_an_alias_that_disagrees_is_a_warning_or_explained(gemma: Live, workplace: Path) -> None:
    server = f"backend.server.base_url={gemma.url}"
    alias = "model.alias=gemma-3-270m-q8_0"
    nothing_declared = jevexp(
        *GEMMA[:3], "model=unclaimed", alias, server, UNTRACKED, cwd=workplace
    )
    declared = run_on(gemma, workplace, alias)

    assert (nothing_declared.status, declared.status) == (0, 0)
    words = "'gemma-3-270m-q8_0' says Q8_0, the weights are Q4_K_M"
    assert f"warning: {words}" in nothing_declared.out
    assert f"explained: {words}, as declared" in declared.out


def tiny_run(gguf: Path, place: Path, *overrides: str, **environment: str) -> dict[str, Any]:
    """Run the tiny model on a server that jevexp starts, in a folder of its own."""
    place.mkdir()
    done = jevexp(
        "dataset=demo",
        "caps=smoke",
        UNTRACKED,
        "backend=llama_cpp",
        "backend.server.threads=1",
        "model=unclaimed",
        "model.alias=tiny",
        f"backend.server.gguf={gguf}",
        *overrides,
        cwd=place,
        **environment,
    )
    assert done.status == 0, done.err
    return manifest(place)


def test_what_is_served_decides_the_fingerprint_and_where_it_is_served_does_not(
    tiny_gguf: Path, workplace: Path
) -> None:
    def fingerprint(folder: str, *overrides: str) -> str:
        found: str = tiny_run(tiny_gguf, workplace / folder, *overrides)["fingerprint"]["value"]
        return found

    first, again = fingerprint("first"), fingerprint("again", "backend.server.threads=2")
    context = fingerprint("context", "backend.server.context=2048")
    cache = fingerprint("cache", "backend.server.cache_type_k=q8_0")

    assert first == again, "a started server has another port each time"
    assert len({first, context, cache}) == 3


def test_weights_are_hashed_once_and_again_when_touched(tiny_gguf: Path, workplace: Path) -> None:
    weights = workplace / "model.gguf"
    weights.write_bytes(tiny_gguf.read_bytes())

    def bytes_read(folder: str) -> int:
        found = tiny_run(weights, workplace / folder, JEVEXP_CACHE=str(workplace / "cache"))
        read: int = found["identity"]["bytes_read"]
        return read

    size = weights.stat().st_size
    assert [bytes_read("first"), bytes_read("second")] == [size, 0]
    weights.touch()
    assert bytes_read("touched") == size


def test_identify_writes_an_option_that_check_confirms(
    gemma: Live, tiny_gguf: Path, workplace: Path
) -> None:
    model_path = gemma.backend.describe()["model_path"]
    for name, weights in (("mine", model_path), ("small", str(tiny_gguf))):
        written = jevexp(
            "identify", weights, "--write", name, "--config-dir", "conf", cwd=workplace
        )
        assert written.status == 0, written.err
        done = jevexp(
            "check",
            "--config-dir",
            "conf",
            "dataset=demo",
            "backend=llama_cpp",
            f"model={name}",
            cwd=workplace,
        )
        assert done.status == 0, done.out + done.err
        assert "ok      identity  confirmed" in done.out
        again = jevexp("identify", weights, "--write", name, "--config-dir", "conf", cwd=workplace)
        assert (again.status, "exists already" in again.err) == (2, True)

    assert sorted(path.name for path in workplace.iterdir()) == ["conf"], "check leaves nothing"


def test_identify_reads_a_server(gemma: Live, workplace: Path) -> None:
    done = jevexp("identify", gemma.url, cwd=workplace)

    assert done.status == 0, done.err
    assert SHA256 in done.out
    assert 'ftype: "Q4_K_M"' in done.out


def test_a_router_serves_many_models_by_name(tiny_gguf: Path, workplace: Path) -> None:
    from tests.support.tiny_gguf import write_tiny_gguf

    other_gguf = write_tiny_gguf(workplace / "other.gguf", seed=8)
    logs = [workplace / "one-log", workplace / "two-log"]
    for folder in logs:
        folder.mkdir()
    command = ("dataset=demo", "caps=smoke", UNTRACKED, "backend=llama_cpp", "model=unclaimed")
    with (
        served(tiny_gguf, logs[0], alias="one") as one,
        served(other_gguf, logs[1], alias="two") as two,
        proxying({"one": one.url, "two": two.url}) as router,
    ):
        server = f"backend.server.base_url={router.url}"
        done = jevexp("-m", *command, server, "model.alias=one,two", cwd=workplace)
        unknown = jevexp(*command, server, "model.alias=three", cwd=workplace)

    assert done.status == 0, done.out + done.err
    found = [
        json.loads(path.read_text())
        for path in sorted(workplace.glob("outputs/sweeps/*/*/*/manifest.json"))
    ]
    assert [one["model"]["resolved"] for one in found] == [["one"], ["two"]]
    observed = [one["identity"]["fields"]["weights.sha256"]["observed"] for one in found]
    assert [values[0]["value"] for values in observed] == [
        hashlib.sha256(path.read_bytes()).hexdigest() for path in (tiny_gguf, other_gguf)
    ]
    assert len({one["fingerprint"]["value"] for one in found}) == 2
    assert {model for _, model in router.passed} == {"one", "two", None}
    assert {path for path, model in router.passed if model is None} == {"/props", "/v1/models"}
    assert unknown.status == 2
    assert "serves no 'three'; choose one of: one, two" in unknown.err


def test_answers_of_another_model_end_a_strict_run(
    tiny_gguf: Path, tmp_path_factory: pytest.TempPathFactory, workplace: Path
) -> None:
    other_log = tmp_path_factory.mktemp("other-log")
    command = ("dataset=demo", "caps=smoke", UNTRACKED, "backend=llama_cpp", "model=unclaimed")
    with (
        served(tiny_gguf, other_log, alias="served") as live,
        proxying({"asked": live.url, "idle": live.url}) as router,
    ):
        arguments = (*command, "model.alias=asked", f"backend.server.base_url={router.url}")
        strict = jevexp(*arguments, cwd=workplace)
        found = manifest(workplace)
        (workplace / "record").mkdir()
        record = jevexp(*arguments, "identity=record", cwd=workplace / "record")

    assert strict.status == 1
    assert found["stop_reason"] == "identity_changed"
    assert found["model"]["session"] == "asked"
    assert found["model"]["resolved"] == ["served"]
    assert found["counts"]["attempted"] == 1
    assert record.status == 0
    assert manifest(workplace / "record")["counts"]["attempted"] == 3


def test_over_the_system_one_wire_a_llama_cpp_server_s_file_is_read(workplace: Path) -> None:
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
    gguf = write_decision(workplace / "tiny.gguf", "openjev", temperatures={"noul": 0.5})
    server = open_server(gguf, "tiny")
    try:
        address = f"backend.base_url={server.start(workplace)}"
        run = ("dataset=demo", "caps=unmetered", "caps.limit=1", "backend=systemone",
               "backend.key_env=null", "model=unclaimed", "model.alias=tiny", UNTRACKED,
               address)  # fmt: skip
        wrong = jevexp(*run, "model.decision={type: kev}", cwd=workplace)
        right = jevexp(*run, "model.decision={type: openjev}", cwd=workplace)
    finally:
        server.stop()

    assert wrong.status == 2
    assert "model.decision.type: declared kev, found openjev (file header)" in wrong.err
    assert right.status == 0, right.err
    found = manifest(workplace)
    sha256 = hashlib.sha256(gguf.read_bytes()).hexdigest()
    assert found["fingerprint"]["inputs"]["weights"] == {"sha256": sha256}
    assert found["fingerprint"]["inputs"]["decision"]["temperatures"] == {"noul": 0.5}
    assert found["identity"]["fields"]["alias"]["observed"][0]["value"] == "tiny"


def test_a_decision_model_is_held_against_what_its_header_says(workplace: Path) -> None:
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
    write_decision(workplace / "tiny.gguf", "openjev", temperatures={"noul": 0.5})
    run = ("dataset=demo", "caps.limit=1", "backend=llama_cpp", "model=mine", UNTRACKED,
           "--config-dir", "own")  # fmt: skip
    command = ("identify", "tiny.gguf", "--write", "mine", "--config-dir", "own")
    assert jevexp(*command, cwd=workplace).status == 0

    wrong = jevexp(*run, "model.decision.temperatures={noul: 0.6}", cwd=workplace)
    assert wrong.status == 2
    assert wrong.err.startswith(
        "error: identity: model.decision.temperatures: declared noul 0.6, found noul 0.5 "
        "(file header)"
    )
    assert not (workplace / "outputs").exists()

    right = jevexp(*run, "outputs=right", cwd=workplace)
    assert right.status == 0, right.err
    assert "identity: confirmed" in right.out
    found = json.loads((only_run(workplace / "right") / "manifest.json").read_text())
    observed = [one["source"] for one in found["identity"]["fields"]["decision"]["observed"]]
    assert observed == ["file header", "server /v1/models"]
    assert found["identity"]["fields"]["decision.temperatures"]["verdict"] == "confirmed"
    assert found["fingerprint"]["inputs"]["decision"]["temperatures"] == {"noul": 0.5}
    assert found["fingerprint"]["inputs"]["chat_template_sha256"] is None
    verified = jevexp("verify", str(only_run(workplace / "right")), cwd=workplace)
    assert verified.status == 0, verified.out + verified.err
