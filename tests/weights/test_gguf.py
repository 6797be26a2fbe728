"""A header says the same here as through the library's own reader."""

import hashlib
from pathlib import Path

import gguf
import pytest

from jevexp.backends.llama_cpp.weights import find_weights
from jevexp.core.ftype import Ftype
from jevexp.weights.digest import WeightsError
from jevexp.weights.gguf import DecisionHeader, GgufHeader, read_header
from tests.support.compose import compose
from tests.support.decision_files import systemone_template, write_decision
from tests.support.tiny_gguf import write_tiny_gguf
from tests.weights import gguf_bytes


def test_a_header_reads_as_the_library_reads_it(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf", context=4096)
    reader, header = gguf.GGUFReader(path), read_header(path)

    def said(key: str) -> object:
        field = reader.get_field(key)
        return field.contents() if field else None

    assert header.name == said("general.name")
    assert header.architecture == said("general.architecture")
    assert header.ftype_number == said("general.file_type")
    assert header.context_length == said("llama.context_length") == 4096
    assert header.n_vocab == len(said("tokenizer.ggml.tokens"))  # type: ignore[arg-type]
    assert header.n_params == sum(int(tensor.n_elements) for tensor in reader.tensors)
    assert header.tensor_bytes == sum(int(tensor.n_bytes) for tensor in reader.tensors)
    assert header.tensor_types == {"F32": len(reader.tensors)}


def test_a_tiny_model_has_a_template_and_a_type(tmp_path: Path) -> None:
    header = read_header(write_tiny_gguf(tmp_path / "tiny.gguf"))
    assert header.ftype == Ftype("F32", 0)
    # SHA-256 of tests.support.tiny_gguf.CHATML.
    assert header.chat_template_sha256 is not None
    assert header.chat_template_sha256.startswith("4f05b98fc0a9dde9")
    assert (header.size_label, header.quantization_version, header.parts) == (None, None, 1)


def test_a_decision_model_says_its_type_temperatures_template_and_settings(tmp_path: Path) -> None:
    path = write_decision(tmp_path / "laya.gguf", "laya", temperatures={"choice": 1.3})
    template = systemone_template("laya")
    assert read_header(path).decision == DecisionHeader(
        type="laya",
        temperatures={"choice": 1.3},
        template_sha256=hashlib.sha256(template.encode()).hexdigest(),
        settings={"max_head_tokens": 192},
    )


def test_temperatures_are_numbers_or_texts_of_them(tmp_path: Path) -> None:
    path = write_tiny_gguf(
        tmp_path / "tiny.gguf",
        further_keys={
            "llama.decision.temperature.score.3_5": "0.1",
            "llama.decision.temperature.noul": 0.1,
            "llama.decision.type": "kev",
        },
    )
    decision = read_header(path).decision
    assert decision is not None
    assert decision.temperatures == {"score.3_5": 0.1, "noul": 0.1}
    assert decision.template_sha256 is None


def test_another_architecture_s_decision_is_none(tmp_path: Path) -> None:
    keys: dict[str, str | float] = {"bert.decision.type": "laya", "llama.decision.block_count": 2.0}
    path = write_tiny_gguf(tmp_path / "tiny.gguf", further_keys=keys)
    assert read_header(path).decision is None


def test_tensors_are_counted_by_type(tmp_path: Path) -> None:
    header = read_header(gguf_bytes.quantized(tmp_path))
    assert header.ftype == Ftype("Q2_K", 10)
    assert header.tensor_types == {"Q2_K": 2, "F32": 1}
    assert header.n_params == 2 * 256 + 1
    assert header.tensor_bytes == 2 * 84 + 4


def test_a_header_may_say_nothing(tmp_path: Path) -> None:
    path = tmp_path / "bare.gguf"
    path.write_bytes(gguf_bytes.model())
    assert read_header(path) == GgufHeader(
        name=None,
        architecture=None,
        ftype=None,
        ftype_number=None,
        size_label=None,
        quantization_version=None,
        tensor_types={},
        n_params=0,
        tensor_bytes=0,
        chat_template_sha256=None,
        context_length=None,
        n_vocab=None,
        parts=1,
        decision=None,
    )


def test_what_the_library_does_not_know_keeps_its_number(tmp_path: Path) -> None:
    path = tmp_path / "new.gguf"
    described = gguf_bytes.tensor("new", 999, [1], 0)
    fields = gguf_bytes.key("general.file_type", 777)
    path.write_bytes(gguf_bytes.start(1, 1) + fields + described + bytes(64))
    header = read_header(path)
    assert (header.ftype, header.ftype_number) == (None, 777)
    assert header.tensor_types == {"TYPE_999": 1}


def test_parts_are_one_model_whichever_is_named(tmp_path: Path) -> None:
    parts = gguf_bytes.split(tmp_path, 3)
    headers = [read_header(part) for part in parts]
    assert headers[0] == headers[1] == headers[2]
    assert headers[0].ftype == Ftype("Q4_K_M", 15)
    assert headers[0].tensor_types == {"Q4_K": 6}
    assert (headers[0].n_params, headers[0].parts) == (6 * 256, 3)


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    parts = gguf_bytes.split(tmp_path, 3)
    parts[1].unlink()
    with pytest.raises(WeightsError) as caught:
        read_header(parts[0])
    assert str(caught.value) == f"{parts[1]}: missing; part 2 of 3"


def test_a_name_that_claims_many_parts_is_refused_at_the_first(tmp_path: Path) -> None:
    path = gguf_bytes.quantized(tmp_path, name="big-00001-of-99999.gguf")
    with pytest.raises(WeightsError, match=r"big-00002-of-99999\.gguf: missing; part 2 of 99999"):
        read_header(path)


@pytest.mark.parametrize("name", ["big-00000-of-00003.gguf", "big-00004-of-00003.gguf"])
def test_a_part_beyond_the_last_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(WeightsError, match=r"part [04] of 3 cannot be"):
        read_header(tmp_path / name)


def test_a_part_under_another_name_is_refused(tmp_path: Path) -> None:
    first = gguf_bytes.split(tmp_path, 2)[0].rename(tmp_path / "whole.gguf")
    with pytest.raises(WeightsError) as caught:
        read_header(first)
    assert str(caught.value) == (
        f"{first}: its header says 2 parts, its name says 1; "
        "parts are named NAME-00001-of-00003.gguf"
    )


def test_swapped_parts_are_refused(tmp_path: Path) -> None:
    first, second = gguf_bytes.split(tmp_path, 2)
    first.rename(tmp_path / "kept")
    second.rename(first)
    (tmp_path / "kept").rename(second)
    with pytest.raises(WeightsError, match="its header says part 2, its name says part 1"):
        read_header(first)


def test_a_part_of_another_model_is_refused(tmp_path: Path) -> None:
    first, second = gguf_bytes.split(tmp_path, 2)
    keys: dict[str, int | str] = {"split.no": 1, "split.count": 2}
    second.write_bytes(gguf_bytes.model(keys, {"one": gguf_bytes.Q4_K}))
    with pytest.raises(WeightsError, match="expected 3 tensors in all parts, found 2"):
        read_header(first)


@pytest.mark.parametrize("option", ["gemma3_270m_q4km", "smollm2_135m_q4_1"])
def test_real_models_read_in_a_moment(option: str) -> None:
    model = compose("dataset=demo", f"model={option}").model
    path = find_weights(model)
    assert path is not None
    header = read_header(path)
    assert header.ftype is not None
    assert header.ftype.name == model.quantization.ftype
    assert header.tensor_types == model.quantization.tensor_types
