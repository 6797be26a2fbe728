"""`jevexp ui` refuses what cannot work before it starts anything."""

import socket
from pathlib import Path

import pytest

from jevexp.cli.verbs.ui import main
from jevexp.errors import InputError


def test_a_folder_that_does_not_exist_is_not_made(workplace: Path) -> None:
    with pytest.raises(InputError, match="outputs: no such folder; run something, or give"):
        main([])
    assert list(workplace.iterdir()) == []


def test_a_port_that_is_taken_is_named(workplace: Path) -> None:
    (workplace / "outputs").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"--port {port}: .*give another --port"):
            main(["--port", str(port)])


@pytest.mark.parametrize("port", ["-1", "70000"])
def test_a_port_that_cannot_be_is_refused(workplace: Path, port: str) -> None:
    (workplace / "outputs").mkdir()
    with pytest.raises(InputError, match=f"--port {port}: "):
        main(["--port", port])


def test_a_server_that_is_down_is_said_in_one_line(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--uri", "http://127.0.0.1:1"]) == 1
    assert capsys.readouterr().out.startswith("error: http://127.0.0.1:1: cannot be reached")
