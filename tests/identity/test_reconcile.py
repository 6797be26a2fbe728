"""Every field ends with one verdict, and so does the whole."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jevexp.core.identity import ClaimStatus, IdentityReport, Level, ObservedValue, Source
from jevexp.core.json import dumps
from jevexp.identity import Observed, observe, reconcile
from jevexp.settings import ModelIdentity
from tests.identity.servers import said_by, says
from tests.weights import gguf_bytes

CONFIRMED, CONTRADICTED = ClaimStatus.CONFIRMED, ClaimStatus.CONTRADICTED
DECLARED_ONLY, OBSERVED_ONLY = ClaimStatus.DECLARED_ONLY, ClaimStatus.OBSERVED_ONLY


def model(alias: str = "served", **claims: Any) -> ModelIdentity:
    return ModelIdentity.model_validate({"name": "m", "alias": alias, **claims})


def seen(**values: Any) -> Observed:
    """What a file header says, with dots written as two underscores."""
    return Observed(
        {
            name.replace("__", "."): (says(value, Source.FILE_HEADER),)
            for name, value in values.items()
        }
    )


def verdict(report: IdentityReport, name: str) -> ClaimStatus | None:
    field = report.fields.get(name)
    return field.status if field else None


def codes(report: IdentityReport) -> list[tuple[Level, str]]:
    return [(finding.level, finding.code) for finding in report.findings]


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    return gguf_bytes.quantized(tmp_path)


@pytest.mark.parametrize(
    "claims",
    [
        {"weights": {"bytes": 7}},
        {"quantization": {"ftype": 10}},
        {"chat_template": {"sha256": "c" * 64}},
        {"files": {"projector": {"sha256": "1" * 64}}},
    ],
    ids=lambda claims: next(iter(claims)),
)
def test_one_confirmed_claim_about_the_model_confirms_it(claims: dict[str, Any]) -> None:
    report = reconcile(
        model(**claims),
        seen(
            weights__bytes=7,
            quantization__ftype="Q2_K",
            chat_template__sha256="c" * 64,
            files__projector__sha256="1" * 64,
        ),
    )
    confirmed = [name for name, field in report.fields.items() if field.status is CONFIRMED]
    assert [name.partition(".")[0] for name in confirmed] == list(claims)
    assert report.verdict is CONFIRMED


def test_how_a_model_is_named_and_served_does_not_confirm_it() -> None:
    report = reconcile(model(cache_type_k="q8_0"), seen(cache_type_k="q8_0"))
    assert verdict(report, "cache_type_k") is CONFIRMED
    assert report.verdict is DECLARED_ONLY


def test_true_claims_are_confirmed(weights: Path) -> None:
    file = observe({}, weights=weights)
    report = reconcile(
        model(
            weights={"sha256": file.value("weights.sha256"), "bytes": weights.stat().st_size},
            quantization={"label": "Q2_K", "ftype": 10, "tensor_types": {"F32": 1, "Q2_K": 2}},
            chat_template={"sha256": file.value("chat_template.sha256")},
        ),
        file,
    )
    claimed = {n: f.status for n, f in report.fields.items() if f.declared is not None}
    assert claimed == {
        "alias": DECLARED_ONLY,
        "weights.sha256": CONFIRMED,
        "weights.bytes": CONFIRMED,
        "quantization.label": CONFIRMED,
        "quantization.ftype": CONFIRMED,
        "quantization.tensor_types": CONFIRMED,
        "chat_template.sha256": CONFIRMED,
    }
    assert report.verdict is CONFIRMED
    assert (report.contradictions, report.findings, report.reason()) == ({}, [], None)


@pytest.mark.parametrize(
    ("claims", "field"),
    [
        ({"quantization": {"ftype": "Q8_0"}}, "quantization.ftype"),
        ({"quantization": {"label": "Q8_0"}}, "quantization.label"),
        ({"quantization": {"tensor_types": {"Q2_K": 3}}}, "quantization.tensor_types"),
        ({"weights": {"sha256": "0" * 64}}, "weights.sha256"),
        ({"weights": {"bytes": 1}}, "weights.bytes"),
        ({"chat_template": {"sha256": "0" * 64}}, "chat_template.sha256"),
    ],
)
def test_a_false_claim_is_contradicted(weights: Path, claims: dict[str, Any], field: str) -> None:
    report = reconcile(model(**claims), observe({}, weights=weights))
    assert report.verdict is CONTRADICTED
    assert list(report.contradictions) == [field]


def test_one_digit_is_enough(weights: Path) -> None:
    file = observe({}, weights=weights)
    sha256 = file.value("weights.sha256")
    other = sha256[:-1] + ("0" if sha256[-1] != "0" else "1")
    report = reconcile(model(weights={"sha256": other}), file)
    assert report.reason() == (
        f"model.weights.sha256: declared {other}, found {sha256} (file bytes)"
    )


def test_a_claim_that_nothing_bears_on_is_declared_only() -> None:
    report = reconcile(
        model(weights={"sha256": "0" * 64, "repository": "a/b"}, cache_type_k="q8_0"), Observed()
    )
    assert {field.status for field in report.fields.values()} == {DECLARED_ONLY}
    assert report.verdict is DECLARED_ONLY


def test_what_is_observed_alone_is_observed_only(weights: Path) -> None:
    report = reconcile(model(), observe({}, weights=weights))
    assert verdict(report, "weights.sha256") is OBSERVED_ONLY
    assert report.verdict is OBSERVED_ONLY


def test_nothing_at_all_is_declared_only() -> None:
    assert reconcile(model(), Observed()).verdict is DECLARED_ONLY


def test_an_alias_that_is_confirmed_confirms_no_weights() -> None:
    report = reconcile(model("served"), observe(said_by()))
    assert verdict(report, "alias") is CONFIRMED
    assert report.verdict is OBSERVED_ONLY


def test_a_context_that_is_confirmed_confirms_no_weights() -> None:
    report = reconcile(model(context=4096), observe(said_by()))
    assert verdict(report, "context") is CONFIRMED
    assert report.verdict is DECLARED_ONLY


@pytest.mark.parametrize(
    ("claim", "expected"), [({"context": 8192}, "context"), ({"cache_type_k": "q8_0"}, None)]
)
def test_serving_is_judged_where_it_is_observed(claim: dict[str, Any], expected: str) -> None:
    report = reconcile(model(**claim), observe(said_by()))
    assert list(report.contradictions) == ([expected] if expected else [])


def test_other_names_and_paths_contradict_nothing(weights: Path) -> None:
    claims = {"file": "original.gguf", "path": "/somewhere/original.gguf"}
    report = reconcile(model("asked", weights=claims), observe(said_by(), weights=weights))
    assert report.verdict is OBSERVED_ONLY
    assert {verdict(report, n) for n in ("alias", "weights.file", "weights.path")} == {
        DECLARED_ONLY
    }
    assert codes(report)[:3] == [
        (Level.WARNING, "other_name"),
        (Level.NOTE, "other_name"),
        (Level.NOTE, "other_name"),
    ]
    assert report.findings[0].message == "declared asked, found served (server /v1/models)"


def test_a_relative_path_is_the_same_path(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(weights.parent)
    report = reconcile(model(weights={"path": "./model.gguf"}), observe({}, weights=weights))
    assert verdict(report, "weights.path") is CONFIRMED
    monkeypatch.setenv("HOME", str(weights.parent))
    report = reconcile(model(weights={"path": "~/model.gguf"}), observe({}, weights=weights))
    assert verdict(report, "weights.path") is CONFIRMED


@pytest.mark.parametrize(
    "said", [{"n_params": 7}, {"size": 7}, {"n_vocab": 7}, {"ftype": "Q8_0"}, {"n_ctx_train": 1}]
)
def test_a_server_that_disagrees_with_its_file_is_a_contradiction(
    tmp_path: Path, said: dict[str, Any]
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(
        gguf_bytes.model(
            {
                "general.architecture": "llama",
                "general.file_type": 10,
                "llama.context_length": 8192,
                "llama.vocab_size": 262144,
            },
            {"a": gguf_bytes.Q2_K, "b": gguf_bytes.Q2_K, "c": gguf_bytes.F32},
        )
    )
    agreeing = said_by(managed=True)
    assert reconcile(model(), observe(agreeing, weights=path)).contradictions == {}
    report = reconcile(model(), observe(agreeing | said, weights=path))
    assert report.verdict is CONTRADICTED
    (contradicted,) = report.contradictions.values()
    assert {value.source for value in contradicted.observed} >= {Source.FILE_HEADER}


def test_a_true_claim_does_not_heal_sources_that_disagree(weights: Path) -> None:
    claim = model(quantization={"ftype": "Q2_K"})
    report = reconcile(claim, observe(said_by(ftype="Q8_0"), weights=weights))
    assert report.reason() == (
        "model.quantization.ftype: declared Q2_K, found Q2_K (file header), found Q8_0 (server)"
    )


def test_a_guess_decides_nothing(tmp_path: Path) -> None:
    weights = gguf_bytes.quantized(tmp_path, ftype=None)
    said = said_by(ftype="(guessed) Q4_K - Medium")
    for claim in ("Q4_K_M", "Q2_K"):
        report = reconcile(model(quantization={"ftype": claim}), observe(said, weights=weights))
        assert verdict(report, "quantization.ftype") is DECLARED_ONLY
        assert (Level.NOTE, "guessed_ftype") in codes(report)


def test_the_template_that_is_rendered_counts(weights: Path) -> None:
    """A server may be told to render another template than the file's."""
    served = observe(said_by(chat_template_sha256="a" * 64), weights=weights)
    report = reconcile(model(chat_template={"sha256": "a" * 64}), served)
    assert verdict(report, "chat_template.sha256") is CONFIRMED
    assert (Level.WARNING, "other_template") in codes(report)
    own = observe({}, weights=weights).value("chat_template.sha256")
    report = reconcile(model(chat_template={"sha256": own}), served)
    assert verdict(report, "chat_template.sha256") is CONTRADICTED


def test_a_missing_template_is_a_note(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_bytes.model({"general.file_type": 10}))
    alone = reconcile(model(), observe({}, weights=path))
    served = reconcile(model(), observe(said_by(), weights=path))
    assert [f.message for f in alone.findings] == ["the weights' file has no chat template"]
    assert "the weights' file has no chat template; the server renders its own fallback" in [
        f.message for f in served.findings
    ]


@pytest.mark.parametrize(
    ("declared", "level", "whole"),
    [
        ({}, Level.WARNING, OBSERVED_ONLY),
        ({"ftype": "Q2_K"}, Level.EXPLAINED, CONFIRMED),
        ({"label": "Q2_K"}, Level.EXPLAINED, CONFIRMED),
        ({"ftype": "Q4_K_M"}, Level.CONTRADICTION, CONTRADICTED),
        ({"label": "Q4_K_M"}, Level.CONTRADICTION, CONTRADICTED),
        ({"ftype": "Q8_0"}, Level.WARNING, CONTRADICTED),
        ({"label": "fit24gib"}, Level.WARNING, DECLARED_ONLY),
    ],
)
def test_an_alias_that_names_another_quantization(
    declared: dict[str, Any], level: Level, whole: ClaimStatus
) -> None:
    claim = model("gemma-4-31b-kv9-q4km-mm", quantization=declared)
    report = reconcile(claim, seen(quantization__ftype="Q2_K"))
    assert codes(report) == [(level, "alias_quantization")]
    assert report.verdict is whole
    assert report.findings[0].message.startswith(
        "'gemma-4-31b-kv9-q4km-mm' says Q4_K_M, the weights are Q2_K"
    )


def test_one_of_several_types_in_an_alias_is_claimed_and_none_observed() -> None:
    claim = model("m-q4_k_m-f16", quantization={"ftype": "Q4_K_M"})
    assert codes(reconcile(claim, seen(quantization__ftype="Q2_K"))) == [
        (Level.CONTRADICTION, "alias_quantization")
    ]


def test_every_claim_about_a_further_file_is_a_field() -> None:
    claims = {
        "file": "p.gguf",
        "path": "/models/p.gguf",
        "sha256": "0" * 64,
        "bytes": 7,
        "repository": "someone/model",
        "revision": "main",
    }
    report = reconcile(model(files={"projector": claims}), Observed())
    declared = {name: field.declared for name, field in report.fields.items()}
    assert declared == {"alias": "served"} | {
        f"files.projector.{name}": value for name, value in claims.items()
    }


@pytest.mark.parametrize("alias", ["model-q2_k", "model", "model-q2", "model-q2_k-f16"])
def test_an_alias_that_agrees_is_no_finding(alias: str) -> None:
    assert reconcile(model(alias), seen(quantization__ftype="Q2_K")).findings == []


def test_a_family_agrees_with_each_of_its_sizes() -> None:
    for ftype in ("Q4_K_S", "Q4_K_M"):
        assert reconcile(model("m-q4_k"), seen(quantization__ftype=ftype)).findings == []
    assert codes(reconcile(model("m-q4_k"), seen(quantization__ftype="Q8_0"))) == [
        (Level.WARNING, "alias_quantization")
    ]


def test_the_name_that_the_server_uses_counts_too() -> None:
    report = reconcile(model("mine"), observe(said_by(model="gemma-q8_0", model_alias=None)))
    assert (Level.WARNING, "alias_quantization") in codes(report)


def test_a_declared_type_explains_where_nothing_is_observed() -> None:
    report = reconcile(model("m-q4km", quantization={"ftype": "Q2_K"}), Observed())
    assert codes(report) == [(Level.EXPLAINED, "alias_quantization")]
    assert reconcile(model("m-q4km"), Observed()).findings == []


def test_the_published_result_is_explained() -> None:
    from tests.support.compose import compose

    claim = compose("dataset=demo", "model=gemma4_q4km").model
    said = said_by(
        base_url="http://10.0.0.7:8080", model=claim.alias, model_alias=claim.alias, n_ctx=4096
    )
    report = reconcile(claim, observe(said))
    assert report.verdict is CONFIRMED
    assert codes(report) == [(Level.EXPLAINED, "alias_quantization")]
    assert verdict(report, "context") is CONFIRMED
    assert verdict(report, "cache_type_k") is DECLARED_ONLY
    assert verdict(report, "files.projector.sha256") is DECLARED_ONLY


def test_further_files_are_judged(tmp_path: Path) -> None:
    projector = tmp_path / "projector.gguf"
    projector.write_bytes(b"projector")
    found = observe({}, files={"projector": projector})
    true = {"sha256": found.value("files.projector.sha256")}
    assert reconcile(model(files={"projector": true}), found).verdict is CONFIRMED
    false = {"sha256": "0" * 64}
    assert reconcile(model(files={"projector": false}), found).verdict is CONTRADICTED


def test_a_manifest_holds_claims_values_sources_and_verdicts(weights: Path) -> None:
    claim = model(quantization={"ftype": "Q8_0"})
    report = reconcile(claim, observe(said_by(model_path=None), weights=weights))
    section = json.loads(dumps(report.model_dump(mode="json")))
    assert section["verdict"] == "contradicted"
    assert section["fields"]["quantization.ftype"] == {
        "verdict": "contradicted",
        "declared": "Q8_0",
        "observed": [
            {"value": "Q2_K", "source": "file header"},
            {"value": "Q2_K", "source": "server"},
        ],
    }
    assert section["findings"] == [finding.model_dump(mode="json") for finding in report.findings]
    assert section["bytes_hashed"] == weights.stat().st_size


names = st.sampled_from(
    ["weights.sha256", "weights.bytes", "quantization.ftype", "context", "n_params", "alias"]
)
values = st.sampled_from(["a" * 64, "b" * 64, 4096, 8192, "Q4_K_M", "Q2_K"])
observations = st.dictionaries(
    names,
    st.lists(st.builds(says, values, st.sampled_from(Source)), min_size=1, max_size=3).map(tuple),
)
claims = st.fixed_dictionaries(
    {"alias": st.sampled_from(["served", "m-q4km", "m-q8_0", "Q2_K"])},
    optional={
        "weights": st.fixed_dictionaries(
            {},
            optional={
                "sha256": st.sampled_from(["a" * 64, "b" * 64]),
                "bytes": st.sampled_from([4096, 8192]),
                "path": st.text(),
            },
        ),
        "quantization": st.fixed_dictionaries(
            {}, optional={"ftype": st.sampled_from(["Q4_K_M", 10]), "label": st.text()}
        ),
        "context": st.sampled_from([4096, 8192]),
    },
)


@given(claims, observations)
def test_verdicts_follow_from_claim_and_values(
    claim: dict[str, Any], found: Mapping[str, tuple[ObservedValue, ...]]
) -> None:
    report = reconcile(model(**claim), Observed(found))
    assert set(found) <= set(report.fields)
    for name, field in report.fields.items():
        match field.status:
            case ClaimStatus.CONFIRMED:
                assert field.declared is not None
                assert field.observed
            case ClaimStatus.DECLARED_ONLY:
                assert field.declared is not None
            case ClaimStatus.OBSERVED_ONLY:
                assert field.declared is None
                assert field.observed
            case ClaimStatus.CONTRADICTED:
                assert field.observed
                assert name != "alias"
    contradicted = bool(report.contradictions) or any(
        finding.level is Level.CONTRADICTION for finding in report.findings
    )
    assert (report.verdict is CONTRADICTED) == contradicted == (report.reason() is not None)
    assert json.loads(dumps(report.model_dump(mode="json")))["verdict"] == report.verdict.value


@given(claims)
def test_a_claim_agrees_with_itself(claim: dict[str, Any]) -> None:
    declared = model(**claim)
    fields = reconcile(declared, Observed()).fields
    found = {
        name: (says(field.declared, Source.FILE_BYTES),)
        for name, field in fields.items()
        if name not in ("quantization.label", "weights.path")
    }
    report = reconcile(declared, Observed(found))
    assert all(report.fields[name].status is CONFIRMED for name in found)


@given(claims, observations)
def test_more_observations_never_turn_a_contradiction_into_a_confirmation(
    claim: dict[str, Any], found: dict[str, tuple[ObservedValue, ...]]
) -> None:
    before = reconcile(model(**claim), Observed(found))
    more = {
        name: (*values, says("something else", Source.SERVER)) for name, values in found.items()
    }
    after = reconcile(model(**claim), Observed(more))
    for name in before.contradictions:
        assert verdict(after, name) is CONTRADICTED
