"""From an address to a store."""

from pathlib import Path

import pytest

from jevexp.tracking.mlflow.location import StoreLocation


def test_without_an_address_all_of_it_lives_in_the_outputs_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = StoreLocation.of(None, Path("outputs"))

    assert place.uri == f"sqlite:///{tmp_path}/outputs/mlflow.db"
    assert place.artifacts == f"file://{tmp_path}/outputs/mlartifacts"
    assert place.lock == tmp_path / "outputs" / "mlflow.db.lock"


def test_a_database_keeps_its_files_beside_it_whatever_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = StoreLocation.of("sqlite:///shared/all.db", Path("outputs"))

    assert place.uri == f"sqlite:///{tmp_path}/shared/all.db"
    assert place.artifacts == f"file://{tmp_path}/shared/mlartifacts"


@pytest.mark.parametrize("uri", ["http://host:5000", "https://host/mlflow"])
def test_a_server_looks_after_its_own_files(uri: str) -> None:
    place = StoreLocation.of(uri, Path("outputs"))

    assert (place.uri, place.artifacts, place.lock, place.served) == (uri, None, None, True)
