"""Real System One servers, started for the run: sparrow-decider and laya-serve."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jevexp.backends.llama_cpp.weights import find_weights
from jevexp.backends.server import CommandServer
from jevexp.backends.systemone import SystemOne
from jevexp.core.decision import Request
from jevexp.errors import InputError
from tests.backends.systemone.conftest import TASKS
from tests.live.conftest import GEMMA
from tests.support.cli import jevexp, only_run
from tests.support.llama import model_identity
from tests.support.proxy import proxying
from tests.support.systemone import LAYA, SPARROW, settings

pytestmark = pytest.mark.live

SPARROW_MODEL = "sparrow-nano-general-v1.1"
DEMO = ("dataset=demo", "caps=unmetered", "pricing=local")
PROVIDERS = ("-m", "experiment=providers", "tracking=none")


@pytest.fixture(
    params=[("sparrow_decider", SPARROW), ("laya_serve", LAYA)], ids=["sparrow", "laya"]
)
def command(request: pytest.FixtureRequest) -> list[str]:
    module, words = request.param
    pytest.importorskip(module, reason=f"{module} is not installed")
    found: list[str] = words
    return found


def manifest(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "manifest.json").read_text())
    return found


def test_it_answers_every_kind_and_ends_with_the_provider(
    command: list[str], tmp_path: Path
) -> None:
    backend = SystemOne(settings(command=command), model_identity()).open(tmp_path)
    decisions = {
        kind: backend.decide(Request.of(task, "jev-latest")) for kind, task in TASKS.items()
    }
    backend.close()
    for kind, decision in decisions.items():
        assert decision.ok, decision
        assert set(decision.probs or {}) == set(TASKS[kind].labels)
        assert dict(decision.usage) == {"input_tokens": 0, "output_tokens": 0}
        assert decision.model in (SPARROW_MODEL, "laya-english")
    assert (tmp_path / "server.log").exists()


def test_only_what_a_server_says_of_itself_is_described(tmp_path: Path) -> None:
    pytest.importorskip("sparrow_decider", reason="sparrow-decider is not installed")
    pytest.importorskip("laya_serve", reason="laya-serve is not installed")
    described = []
    for command in (SPARROW, LAYA):
        backend = SystemOne(settings(command=command), model_identity()).open(tmp_path)
        described.append(backend.describe())
        backend.close()
    sparrow, laya = described
    assert (sparrow["model"], sparrow["models"]) == (SPARROW_MODEL, None)
    assert (laya["model"], {"jev-latest", "laya-english"} - set(laya["models"])) == (None, set())
    for facts in described:
        assert (facts["managed"], facts["base_url"]) == (True, "http://127.0.0.1")


def test_a_run_sends_one_request_a_task(command: list[str], workplace: Path) -> None:
    server = CommandServer(settings(command=command).server)
    try:
        with proxying({"m": server.start(workplace)}) as proxy:
            done = jevexp(
                *DEMO, "tracking=none", "backend=systemone", f"backend.base_url={proxy.url}",
                "backend.key_env=null", "model=jev_latest", cwd=workplace,
            )  # fmt: skip
    finally:
        server.stop()
    assert done.status == 0, done.out + done.err
    # Nobody knows what `/health` costs at a service that the run did not start.
    assert Counter(proxy.passed) == {
        ("/v1/models", None): 1,
        ("/v1/systemone", "jev-latest"): 48,
    }


# MLflow's database layer warns about what it uses itself.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize(
    ("backend", "answers"), [("sparrow", SPARROW_MODEL), ("laya_serve", "laya-english")]
)
def test_another_model_than_the_requested_one_shows_everywhere(
    backend: str, answers: str, workplace: Path
) -> None:
    pytest.importorskip({"sparrow": "sparrow_decider"}.get(backend, backend))
    done = jevexp(*DEMO, f"backend={backend}", "model=jev_latest", "caps.limit=3", cwd=workplace)

    assert done.status == 0, done.out + done.err
    assert f"warning: jev-latest was asked, {answers} answered" in done.out
    model = manifest(only_run(workplace / "outputs"))["model"]
    assert (model["requested"], model["resolved"]) == ("jev-latest", [answers])
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{workplace}/outputs/mlflow.db")
    (run,) = client.search_runs([client.get_experiment_by_name("jevexp").experiment_id])
    assert run.data.tags["jev.model"] == "jev-latest"
    assert run.data.tags["jev.model_answered"] == answers


def test_a_server_that_names_its_model_is_compared_before_the_first_task(workplace: Path) -> None:
    pytest.importorskip("sparrow_decider", reason="sparrow-decider is not installed")
    done = jevexp("check", *DEMO, "tracking=none", "backend=sparrow", "model=jev_latest",
                  cwd=workplace)  # fmt: skip
    assert done.status == 0, done.out + done.err
    assert f"warning: declared jev-latest, found {SPARROW_MODEL} (provider)" in done.out


@pytest.mark.parametrize("gemma", [False, True], ids=["small ones", "as shipped"])
def test_one_command_compares_providers_in_one_table(gemma: bool, workplace: Path) -> None:
    pytest.importorskip("sparrow_decider", reason="sparrow-decider is not installed")
    names = ["sparrow_nano", "fake"]
    if gemma:
        pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
        try:
            find_weights(model_identity(weights=GEMMA))
        except InputError as error:
            pytest.skip(str(error))
        names.insert(0, "gemma3_270m")
    chosen = [] if gemma else [f"experiment/providers={','.join(names)}"]
    done = jevexp(*PROVIDERS, *chosen, "caps.limit=2", cwd=workplace)

    assert done.status == 0, done.out + done.err
    assert f"{len(names)} of {len(names)} runs complete" in done.out
    table = done.out[done.out.index("experiment/providers ") :]
    rows = [line for line in table.splitlines() if any(f" {name} " in line for name in names)]
    assert [row.split()[1] for row in rows] == names
    assert all("2/2" in row for row in rows)
    runs = sorted(workplace.glob("outputs/sweeps/*/*/*/manifest.json"))
    assert [manifest(path.parent)["model"]["resolved"] for path in runs] == [
        *([["gemma-3-270m-q4_k_m"]] if gemma else []),
        [SPARROW_MODEL],
        ["fake"],
    ]
