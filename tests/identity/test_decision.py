"""A decision model is known by its type, temperatures, template and settings."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from jevexp.core.identity import ClaimStatus, Fingerprint, IdentityReport, Level, Source
from jevexp.identity import fingerprint, model_config, observe, reconcile
from jevexp.settings import ModelIdentity
from tests.identity.servers import said_by, says
from tests.identity.test_config_file import composed
from tests.support.decision_files import systemone_template, write_decision
from tests.support.tiny_gguf import write_tiny_gguf
from tests.weights import gguf_bytes

NATIVE = {"version": "1", "route": "native", "isolation": "each"}
ELSEWHERE: dict[str, Any] = {"base_url": "http://10.0.0.7:8080", "output_modalities": ["decisions"]}
TEMPERATURES = {"choice": 1.3, "score.3_5": 0.7}
DECISION = {
    "type": "laya",
    "temperatures": TEMPERATURES,
    "template_sha256": hashlib.sha256(systemone_template("laya").encode()).hexdigest(),
    "settings": {"max_head_tokens": 192},
}


@pytest.fixture
def laya(tmp_path: Path) -> Path:
    return write_decision(tmp_path / "laya.gguf", "laya", temperatures=TEMPERATURES)


def model(decision: dict[str, Any] | None) -> ModelIdentity:
    return ModelIdentity.of({"name": "m", "alias": "served", "decision": decision})


def held(
    decision: dict[str, Any] | None, weights: Path | None = None, **said: Any
) -> IdentityReport:
    return reconcile(model(decision), observe(said_by(**said), weights=weights))


def taken(decision: dict[str, Any] | None, weights: Path | None = None, **said: Any) -> Fingerprint:
    return fingerprint(said_by(**said), held(decision, weights, **said))


def test_a_file_says_what_decides_how_a_question_is_answered(laya: Path) -> None:
    seen = observe({}, weights=laya)
    assert seen.values["decision"] == (says(True, Source.FILE_HEADER),)
    assert {name: seen.value(f"decision.{name}") for name in DECISION} == DECISION
    assert seen.unknown is None


def test_a_true_claim_is_confirmed(laya: Path) -> None:
    report = held(DECISION, laya, output_modalities=["decisions"], n_params=None, size=None)
    decided = {n: f for n, f in report.fields.items() if n.startswith("decision")}
    assert list(decided) == ["decision", *(f"decision.{name}" for name in DECISION)]
    assert {field.status for field in decided.values()} == {ClaimStatus.CONFIRMED}
    assert [o.source for o in decided["decision"].observed] == [
        Source.FILE_HEADER, Source.SERVER_MODELS
    ]  # fmt: skip
    assert report.findings == []


@pytest.mark.parametrize(
    ("claim", "line"),
    [
        ({"type": "kev"}, "model.decision.type: declared kev, found laya (file header)"),
        (
            {"temperatures": {"choice": 1.3}},
            "model.decision.temperatures: declared choice 1.3, found choice 1.3, score.3_5 0.7 "
            "(file header)",
        ),
        (
            {"temperatures": {}},
            "model.decision.temperatures: declared none, found choice 1.3, score.3_5 0.7 "
            "(file header)",
        ),
        (
            {"settings": {"max_head_tokens": 193}},
            "model.decision.settings: declared max_head_tokens 193, found max_head_tokens 192 "
            "(file header)",
        ),
    ],
)
def test_a_wrong_claim_is_contradicted(claim: dict[str, Any], line: str, laya: Path) -> None:
    report = reconcile(model(DECISION | claim), observe({}, weights=laya))
    assert report.reason() == line


@pytest.mark.parametrize("outputs", [None, ["text"]])
def test_a_model_that_decides_nothing_contradicts_a_claim(
    tmp_path: Path, outputs: list[str] | None
) -> None:
    weights = None if outputs else write_tiny_gguf(tmp_path / "chat.gguf")
    source = "server /v1/models" if outputs else "file header"
    report = held({"type": "kev"}, weights, output_modalities=outputs, size=None, n_params=None)
    assert report.fields["decision"].in_words() == f"declared true, found false ({source})"
    assert "decision" in report.contradictions


def test_a_server_that_does_not_serve_a_decision_file_as_one_is_seen(laya: Path) -> None:
    assert "decision" in held(None, laya, output_modalities=["text"]).contradictions


def test_of_a_file_elsewhere_it_is_only_known_that_it_decides() -> None:
    report = held(None, **ELSEWHERE)
    assert report.fields["decision"].observed == [says(True, Source.SERVER_MODELS)]
    assert not any(name.startswith("decision.") for name in report.fields)
    assert [(f.level, f.code, f.message) for f in report.findings] == [
        (
            Level.NOTE,
            "decision_unknown",
            "a decision model whose file is not here: its type, temperatures, template are unknown",
        )
    ]
    unknown = dict.fromkeys(DECISION)
    assert taken(None, readout=NATIVE, **ELSEWHERE).inputs["decision"] == unknown


def test_servers_from_before_say_nothing_of_decisions() -> None:
    assert "decision" not in observe(said_by(base_url="http://10.0.0.7:8080")).values


def test_another_temperature_is_another_fingerprint() -> None:
    warm, cold = (DECISION | {"temperatures": {"choice": t}} for t in (1.3, 1.2))
    one, other = (taken(claim, readout=NATIVE, **ELSEWHERE) for claim in (warm, cold))
    assert one.inputs["decision"] == warm
    assert one.value != other.value


def test_the_ordinary_template_counts_only_where_it_renders_the_question(laya: Path) -> None:
    seen: dict[str, Any] = {"output_modalities": ["decisions"], "n_params": None, "size": None}
    native = taken(None, laya, readout=NATIVE, **seen)
    assert native.inputs["chat_template_sha256"] is None
    assert native.inputs["decision"] == DECISION
    assert native == taken(None, laya, readout=NATIVE, chat_template_sha256="d" * 64, **seen)
    tokens = taken(None, laya, **seen)
    assert tokens.inputs["chat_template_sha256"] == "c" * 64
    assert "decision" not in tokens.inputs


SERVICE = {"kind": "systemone", "managed": False, "base_url": "https://d.example",
           "model": "served", "version": None, "models": None}  # fmt: skip


@pytest.mark.parametrize(
    ("has_file", "description", "value"),
    [
        (True, said_by(model_path=None), "jf1-641addcccc2902f2"),
        (False, said_by(model_path=None, output_modalities=["text"]), "jf1-3b757b7910106792"),
        (False, SERVICE, "jf1-24fe168a6de4a315"),
    ],
)
def test_fingerprints_from_before_stay_what_they_were(
    has_file: bool, description: dict[str, Any], value: str, tmp_path: Path
) -> None:
    weights = gguf_bytes.quantized(tmp_path) if has_file else None
    report = reconcile(model(None), observe(description, weights=weights))
    assert fingerprint(description, report).value == value


def test_its_option_claims_what_decides_and_no_ordinary_template(laya: Path) -> None:
    seen = observe(said_by(output_modalities=["decisions"], n_params=None, size=None), weights=laya)
    option = model_config(seen, "mine")
    assert seen.value("chat_template.sha256") == "c" * 64
    assert "c" * 64 not in option
    claimed = composed(option, laya.parent)
    assert claimed.decision is not None
    assert claimed.decision.model_dump() == DECISION
    assert claimed.chat_template.sha256 is None
    plain = observe({}, weights=write_tiny_gguf(laya.with_name("chat.gguf")))
    assert "decision" not in model_config(plain, "mine")


def test_its_option_leaves_open_what_is_unknown(tmp_path: Path) -> None:
    claimed = composed(model_config(observe(said_by(**ELSEWHERE)), "mine"), tmp_path)
    assert claimed.decision is not None
    assert claimed.decision.model_dump() == dict.fromkeys(DECISION)
