"""Where runs are logged, as far as the address says it."""

from dataclasses import dataclass
from pathlib import Path

DATABASE = "mlflow.db"
ARTIFACTS = "mlartifacts"
SQLITE = "sqlite:///"


@dataclass(frozen=True, slots=True)
class Place:
    """An MLflow store.

    Attributes:
        uri: MLflow's tracking URI, always set: its default moves with the working directory.
        artifacts: where a new experiment keeps its files; None leaves that to the server.
        lock: held while the store is opened; None where a server looks after itself.
    """

    uri: str
    artifacts: str | None
    lock: Path | None

    @classmethod
    def of(cls, uri: str | None, outputs: Path) -> "Place":
        """The store at `uri`; without one, the database in the folder of runs."""
        if uri is None:
            uri = f"{SQLITE}{outputs.absolute() / DATABASE}"
        if uri.startswith(SQLITE):
            database = Path(uri.removeprefix(SQLITE)).absolute()
            # Beside the database, or files end up in whatever directory the first run had.
            artifacts = database.with_name(ARTIFACTS).as_uri()
            lock = database.with_name(f"{database.name}.lock")
            return cls(f"{SQLITE}{database}", artifacts, lock)
        if uri.startswith(("http://", "https://", "databricks")):
            return cls(uri, None, None)
        folder = outputs.absolute()
        return cls(uri, (folder / ARTIFACTS).as_uri(), folder / f"{DATABASE}.lock")

    @property
    def database(self) -> Path | None:
        """The file of an SQLite database."""
        path = self.uri.removeprefix(SQLITE)
        return None if path == self.uri else Path(path)

    @property
    def served(self) -> bool:
        """Whether a server is behind the URI, with a user interface of its own."""
        return self.uri.startswith(("http://", "https://"))
