"""The bridge on real servers: a llama.cpp server through typevet, System One servers over HTTP."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from jevexp.backends.judgevet import Judgevet
from jevexp.backends.llama_cpp.weights import find_weights
from jevexp.backends.server import CommandServer
from jevexp.core.decision import Request
from jevexp.core.identity import ClaimStatus
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.identity import observe, reconcile
from tests.support.bridge import judgevet_backend, need_bridge
from tests.support.cli import jevexp, only_run
from tests.support.compose import compose
from tests.support.llama import open_server
from tests.support.proxy import Proxy, proxying
from tests.support.systemone import LAYA, SPARROW, settings
from tests.support.tasks import task

pytestmark = [pytest.mark.live, pytest.mark.bridge]

TASKS = [task("noul"), task("choice"), task("score")]
SERVED, ASKED = "smollm2", "another-name"


@dataclass(frozen=True)
class Session:
    """A typevet session on SmolLM2, the proxy that its requests pass, and the server behind."""

    backend: Judgevet
    proxy: Proxy
    url: str


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    need_bridge()
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed")
    try:
        weights = find_weights(compose("model=smollm2_135m_q4_1").model)
    except InputError as error:
        pytest.skip(str(error))
    assert weights is not None
    folder = tmp_path_factory.mktemp("smollm2")
    server = open_server(weights, SERVED)
    url = server.start(folder)
    try:
        with proxying({SERVED: url}) as proxy:
            backend = judgevet_backend(
                "backend=typevet",
                "backend.typevet.framing=chatml_thinking",
                f"backend.base_url={proxy.url}",
                alias=ASKED,
            )
            yield Session(backend.open(folder), proxy, url)
            backend.close()
    finally:
        server.stop()


@pytest.mark.parametrize("of", TASKS, ids=lambda of: of.kind.value)
def test_probabilities_are_those_of_the_symbols_in_the_next_token_distribution(
    session: Session, of: Task
) -> None:
    decision = session.backend.decide(Request.of(of, ASKED))
    assert decision.ok, decision
    assert decision.probs is not None
    prompt = decision.request["sent"]["body"]["prompt"]
    # In the order of typevet's menu, which asks a noul for false first.
    shares = next_token_shares(session.url, prompt, len(decision.probs))
    assert list(decision.probs.values()) == pytest.approx(shares, abs=1e-4)
    assert decision.runtime is not None
    assert 0 <= decision.runtime["off_option_mass"] <= 1


def next_token_shares(url: str, prompt: str, symbols: int) -> list[float]:
    """Shares of the tokens 0, 1, 2 … after a prompt, as the server itself sees them."""
    with httpx.Client(base_url=url, timeout=120, trust_env=False) as client:
        ids = [
            client.post("/tokenize", json={"content": str(symbol)}).json()["tokens"]
            for symbol in range(symbols)
        ]
        body = {
            "prompt": prompt,
            "n_predict": 1,
            "n_probs": 49152,
            "cache_prompt": False,
            "temperature": 1.0,
            "samplers": ["temperature"],
        }
        reply = client.post("/completion", json=body).raise_for_status().json()
    entries = reply["completion_probabilities"][0]["top_logprobs"]
    found = {entry["id"]: math.exp(entry["logprob"]) for entry in entries}
    weights = [found[one] for (one,) in ids]
    return [weight / sum(weights) for weight in weights]


def test_a_decision_is_one_completion_and_names_the_model_that_the_server_named(
    session: Session,
) -> None:
    session.proxy.passed.clear()
    decision = session.backend.decide(Request.of(TASKS[0], ASKED))
    assert Counter(session.proxy.passed)["/completion", ASKED] == 1
    # Typevet itself reports the requested name.
    assert decision.response["model"] == ASKED
    assert (decision.model, decision.status_code) == (SERVED, 200)
    assert decision.usage["input_tokens"] > 0


def test_the_server_s_file_is_the_observed_identity(session: Session) -> None:
    seen = observe(session.backend.describe())
    declared = compose("model=smollm2_135m_q4_1").model
    assert seen.value("weights.sha256") == declared.weights.sha256
    assert seen.value("alias") == SERVED
    assert reconcile(declared, seen).status is ClaimStatus.CONFIRMED


def test_long_answers_are_kept_by_hash(session: Session) -> None:
    decision = session.backend.decide(Request.of(TASKS[0], ASKED))
    body = decision.response["body"]
    assert body["bytes"] > 1_000_000
    assert len(body["sha256"]) == 64
    assert len(json.dumps(decision.response)) < 10_000


@pytest.mark.parametrize(
    ("module", "command", "answers"),
    [
        ("sparrow_decider", SPARROW, "sparrow-nano-general-v1.1"),
        ("laya_serve", LAYA, "laya-english"),
    ],
    ids=["sparrow", "laya"],
)
def test_a_run_sends_one_request_a_task(
    module: str, command: list[str], answers: str, workplace: Path
) -> None:
    need_bridge()
    pytest.importorskip(module, reason=f"{module} is not installed")
    server = CommandServer(settings(command=command).server)
    try:
        with proxying({"m": server.start(workplace)}) as proxy:
            done = jevexp(
                "dataset=demo", "tracking=none", "backend=judgevet", "model=jev_latest",
                f"backend.base_url={proxy.url}", "backend.key_env=null", cwd=workplace,
            )  # fmt: skip
    finally:
        server.stop()
    assert done.status == 0, done.out + done.err
    assert Counter(proxy.passed) == {("/v1/systemone", "jev-latest"): 48}
    manifest = json.loads((only_run(workplace / "outputs") / "manifest.json").read_text())
    assert manifest["model"]["resolved"] == [answers]
