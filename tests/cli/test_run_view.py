"""The identity table of a terminal."""

from io import StringIO
from pathlib import Path

from rich.console import Console

from jevexp.cli.run_view import identity_table
from jevexp.identity import observe, reconcile
from jevexp.settings import ModelIdentity
from tests.identity.servers import said_by
from tests.weights import gguf_bytes


def test_a_table_begins_with_what_is_contradicted(tmp_path: Path) -> None:
    claim = ModelIdentity.model_validate(
        {"name": "m", "alias": "served", "quantization": {"ftype": "Q8_0"}}
    )
    weights = gguf_bytes.quantized(tmp_path)
    report = reconcile(claim, observe(said_by(ftype="Q6_K"), weights=weights))
    columns = [list(column.cells) for column in identity_table(report).columns]
    rows = [[str(cell) for cell in row] for row in zip(*columns, strict=True)]
    assert rows[0] == [
        "quantization.ftype",
        "contradicted",
        "Q8_0",
        "Q2_K\nQ6_K",
        "file header\nserver",
    ]
    by_field = {row[0]: row for row in rows}
    assert by_field["quantization.tensor_types"][3] == "Q2_K 2, F32 1"
    assert by_field["n_params"][4] == "file header, server /v1/models"
    assert len(rows) == len(by_field) == len(report.fields)


def test_it_fits_what_a_terminal_shows(tmp_path: Path) -> None:
    claim = ModelIdentity.model_validate({"name": "m", "alias": "served"})
    report = reconcile(claim, observe(said_by(), weights=gguf_bytes.quantized(tmp_path)))
    screen = StringIO()
    Console(file=screen, width=80).print(identity_table(report))
    assert max(map(len, screen.getvalue().splitlines())) <= 80
