"""`jevexp identify` on files; servers are in tests/live."""

from pathlib import Path

import pytest

from tests.support.cli import jevexp


@pytest.fixture
def gguf(workplace: Path) -> Path:
    from tests.support.tiny_gguf import write_tiny_gguf

    return write_tiny_gguf(workplace / "tiny.gguf")


def test_a_file_is_shown_with_a_ready_option(gguf: Path, workplace: Path) -> None:
    done = jevexp("identify", "tiny.gguf", cwd=workplace)

    assert done.status == 0, done.err
    assert "file header" in done.out
    assert f"bytes: {gguf.stat().st_size}" in done.out
    assert '\nname: "tiny"\nalias: "tiny"\n' in done.out
    assert [path.name for path in workplace.iterdir()] == ["tiny.gguf"]


def test_an_option_is_written_once(gguf: Path, workplace: Path) -> None:
    command = ("identify", "tiny.gguf", "--write", "mine", "--config-dir", "own")
    first = jevexp(*command, cwd=workplace)
    option = workplace / "own/model/mine.yaml"
    text = option.read_text()
    second = jevexp(*command, cwd=workplace)

    assert first.status == 0, first.err
    assert "check it: jevexp check dataset=demo backend=llama_cpp model=mine --config-dir own" in (
        first.out
    )
    assert second.status == 2
    assert "exists already; choose another name" in second.err
    assert option.read_text() == text


def test_a_decision_model_s_option_says_how_it_decides(workplace: Path) -> None:
    from tests.support.decision_files import write_decision

    write_decision(workplace / "kev.gguf", "kev", temperatures={"noul": 0.5})
    done = jevexp("identify", "kev.gguf", cwd=workplace)

    assert done.status == 0, done.err
    assert "decision.temperatures" in done.out
    assert (
        'chat_template:\n  sha256: null\ndecision:\n  type: "kev"\n  temperatures:\n    noul: 0.5\n'
    ) in done.out


def test_of_a_decision_server_without_its_file_it_says_what_is_unknown(workplace: Path) -> None:
    from tests.support.scripted_decisions import scripted_decisions

    with scripted_decisions() as server:
        done = jevexp("identify", server.url, cwd=workplace)

    assert done.status == 0, done.err
    assert "note: a decision model whose file is not here: its type, temperatures" in done.out
    assert "decision:\n  type: null\n  temperatures: null\n" in done.out
    assert "chat_template:\n  sha256: null\n" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.gguf"], "missing.gguf"),
        (["tiny.gguf", "--write", "../mine"], "--write ../mine: a name begins with"),
        (["http://127.0.0.1:9"], "http://127.0.0.1:9 is not usable: no server answers there"),
        (["http://models.example"], "backend.server.base_url: plain http reaches another machine"),
        (["http://127.0.0.1:9", "--allow-http"], "no server answers there"),
    ],
)
def test_what_cannot_be_identified_is_one_line(
    arguments: list[str], words: str, gguf: Path, workplace: Path
) -> None:
    done = jevexp("identify", *arguments, cwd=workplace)

    assert done.status == 2
    assert words in done.err
    assert done.err.count("\n") == 1
    assert [path.name for path in workplace.iterdir()] == ["tiny.gguf"]
