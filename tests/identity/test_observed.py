"""What is observed keeps its source; what cannot be observed says why."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jevexp.core.identity import Source
from jevexp.identity import Observed, observe
from jevexp.weights.digest import WeightsError
from tests.identity.servers import SERVED, said_by, says
from tests.weights import gguf_bytes

FILE_FIELDS = {"weights.sha256", "weights.bytes", "quantization.tensor_types", "architecture"}


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    return gguf_bytes.quantized(tmp_path)


def sources(observed: Observed) -> set[Source]:
    return {found.source for values in observed.values.values() for found in values}


def test_a_file_alone_is_read(weights: Path) -> None:
    seen = observe({}, weights=weights)
    sha256 = hashlib.sha256(weights.read_bytes()).hexdigest()
    assert seen.values["weights.sha256"] == (says(sha256, Source.FILE_BYTES),)
    assert seen.values["weights.path"] == (says(str(weights), Source.FILE_PATH),)
    assert seen.values["quantization.ftype"] == (says("Q2_K", Source.FILE_HEADER),)
    assert seen.value("quantization.tensor_types") == {"Q2_K": 2, "F32": 1}
    assert sources(seen) == {Source.FILE_BYTES, Source.FILE_HEADER, Source.FILE_PATH}
    assert seen.notes == ()


def test_a_server_alone_is_asked() -> None:
    seen = observe(said_by(base_url="http://10.0.0.7:8080"))
    assert seen.values["alias"] == (
        says("served", Source.SERVER_MODELS),
        says("served", Source.SERVER_PROPS),
    )
    assert seen.values["quantization.ftype"] == (says("Q2_K", Source.SERVER),)
    assert seen.values["n_params"] == (says(513, Source.SERVER_MODELS),)
    assert seen.values["context"] == (says(4096, Source.SERVER),)
    assert seen.values["slots"] == (says(1, Source.SERVER_PROPS),)
    assert seen.values["build"] == (says("b9999", Source.SERVER_PROPS),)
    assert seen.value("weights.file") == "model.gguf"
    assert not FILE_FIELDS & set(seen.values)
    assert seen.notes == ("the weights could not be read: the server is on another machine",)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.8.9.10"])
def test_the_file_of_a_server_on_this_machine_is_read(weights: Path, host: str) -> None:
    seen = observe(said_by(base_url=f"http://{host}:8080", model_path=str(weights)))
    assert set(seen.values) >= FILE_FIELDS
    assert seen.values["quantization.ftype"] == (
        says("Q2_K", Source.FILE_HEADER),
        says("Q2_K", Source.SERVER),
    )
    assert seen.notes == ()


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ({"base_url": "http://192.168.1.2"}, "the server is on another machine"),
        ({"base_url": "http://localhost.example.org"}, "the server is on another machine"),
        ({"base_url": None}, "the server is on another machine"),
        ({"model_path": None}, "the server names no file"),
        (
            {"model_path": "models/model.gguf"},
            "the server's path 'models/model.gguf' is relative to a folder that is not known here",
        ),
        (
            {"model_path": "/no/such/model.gguf"},
            "/no/such/model.gguf: cannot be read: No such file or directory",
        ),
    ],
)
def test_why_the_file_is_not_read_is_said(said: Mapping[str, Any], note: str) -> None:
    seen = observe(said_by(**said))
    assert seen.notes == (f"the weights could not be read: {note}",)
    assert not FILE_FIELDS & set(seen.values)


def test_a_served_path_that_holds_something_else_is_a_note(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"something else")
    seen = observe(said_by(model_path=str(path)))
    assert seen.notes == (
        f"the weights could not be read: {path}: not a GGUF file: begins with b'some'",
    )
    assert seen.value("weights.sha256") is None


def test_a_served_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.gguf")
    seen = observe(said_by(model_path=str(tmp_path / "model.gguf")))
    assert "expected a file, found a pipe" in seen.notes[0]


def test_given_weights_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="cannot be read"):
        observe(said_by(), weights=tmp_path / "nothing.gguf")


def test_an_older_build_says_less_and_that_is_no_error(weights: Path) -> None:
    older = dict.fromkeys(["ftype", "model_alias", "model_path", "build_info", "total_slots"])
    seen = observe(said_by(**older))
    assert "quantization.ftype" not in seen.values
    assert seen.value("n_params") == 513
    assert observe(said_by(**older), weights=weights).value("quantization.ftype") == "Q2_K"


def test_a_server_that_says_nothing_leaves_nothing() -> None:
    seen = observe({**dict.fromkeys(SERVED), "kind": "llama_cpp"})
    assert seen.values == {}


@pytest.mark.parametrize("nonsense", [True, -1, 0, "many", 1.5, [1], {"n": 1}])
def test_numbers_that_make_no_sense_are_left_out(nonsense: object) -> None:
    numbers = dict.fromkeys(["n_params", "size", "n_vocab", "n_ctx", "total_slots"], nonsense)
    seen = observe(said_by(**numbers))
    assert not {"n_params", "tensor_bytes", "n_vocab", "context", "slots"} & set(seen.values)


@pytest.mark.parametrize("nonsense", [True, 7, ["text"], {"a": 1}, ""])
def test_texts_that_make_no_sense_are_left_out(nonsense: object) -> None:
    names = ["model", "model_alias", "model_path", "ftype", "build_info", "chat_template_sha256"]
    seen = observe(said_by(**dict.fromkeys(names, nonsense)))
    assert not {"alias", "weights.path", "build", "quantization.ftype"} & set(seen.values)


def test_a_guess_is_marked(tmp_path: Path) -> None:
    weights = gguf_bytes.quantized(tmp_path, ftype=None)
    seen = observe(said_by(ftype="(guessed) Q4_K - Medium"), weights=weights)
    assert seen.values["quantization.ftype"] == (says("Q4_K_M", Source.SERVER_GUESS),)


def test_types_that_are_unknown_here_are_notes(tmp_path: Path) -> None:
    weights = gguf_bytes.quantized(tmp_path, ftype=777)
    seen = observe(said_by(ftype="Q9_Z - Fancy"), weights=weights)
    assert "quantization.ftype" not in seen.values
    assert seen.notes == (
        "the header's file type 777 is unknown to the installed gguf library; "
        "a newer one may know it",
        "the server's file type 'Q9_Z - Fancy' is unknown here",
    )


def test_the_servers_template_comes_before_the_files(weights: Path) -> None:
    seen = observe(said_by(chat_template_sha256="a" * 64), weights=weights)
    assert [found.source for found in seen.values["chat_template.sha256"]] == [
        Source.SERVER_PROPS,
        Source.FILE_HEADER,
    ]


def test_cache_types_are_those_a_server_was_started_with() -> None:
    caches = {"cache_type_k": "q8_0", "cache_type_v": "q8_0"}
    assert "cache_type_k" not in observe(said_by(**caches, managed=False)).values
    managed = observe(said_by(**caches, managed=True))
    assert managed.values["cache_type_v"] == (says("q8_0", Source.CONFIG),)


def test_further_files_are_hashed(weights: Path, tmp_path: Path) -> None:
    projector = tmp_path / "projector.gguf"
    projector.write_bytes(b"not looked into")
    seen = observe({}, weights=weights, files={"projector": projector})
    assert seen.value("files.projector.sha256") == hashlib.sha256(b"not looked into").hexdigest()
    assert seen.value("files.projector.bytes") == len(b"not looked into")
    with pytest.raises(WeightsError, match="No such file"):
        observe({}, files={"adapter": tmp_path / "nothing"})


def test_a_split_model_is_one(tmp_path: Path) -> None:
    parts = gguf_bytes.split(tmp_path, 3)
    seen = observe({}, weights=parts[0])
    assert seen.value("weights.bytes") == sum(part.stat().st_size for part in parts)
    assert seen.value("quantization.tensor_types") == {"Q4_K": 6}
    assert seen.bytes_hashed == seen.value("weights.bytes")


def test_a_second_look_reads_nothing_again(weights: Path) -> None:
    first, second = observe({}, weights=weights), observe({}, weights=weights)
    assert first.bytes_read == first.bytes_hashed == weights.stat().st_size
    assert (second.bytes_read, second.bytes_hashed) == (0, first.bytes_hashed)


@pytest.mark.parametrize("kind", ["fake", "hosted", None])
def test_another_provider_says_which_model_answers(kind: str | None) -> None:
    seen = observe({"kind": kind, "model": "jev-1.13", "model_path": "/etc/passwd"})
    assert seen.values == {"alias": (says("jev-1.13", Source.PROVIDER),)}
    assert observe({"kind": kind}).values == {}
