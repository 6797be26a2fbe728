"""MLflow as a guest: the environment that it gets in this process and in others, and its pages."""

import logging
import math
import os
import signal
import site
import subprocess
import time
import warnings
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, NoReturn

from jevexp.errors import InputError
from jevexp.settings import MlflowTracking
from jevexp.settings.base import read_secret
from jevexp.tracking import TrackingError
from jevexp.tracking.mlflow.location import StoreLocation, ask_health
from jevexp.untrusted.addresses import is_loopback
from jevexp.untrusted.python import python_module, safe_environment

_KEPT = frozenset(
    {"PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV"}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}
)
_CERTIFICATES = frozenset({"MLFLOW_TRACKING_CLIENT_CERT_PATH", "MLFLOW_TRACKING_SERVER_CERT_PATH"})
# What a database's own client reads, to be used for the host that the address names.
_OWN = {"databricks": "DATABRICKS_", "postgresql": "PG"}
_PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})

TIMEOUT = "MLFLOW_HTTP_REQUEST_TIMEOUT"
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    TIMEOUT: "10",
    # A retry would double the wait, and could make a run twice.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    # A server must not send us, or a file, to another address.
    "MLFLOW_ALLOW_HTTP_REDIRECTS": "false",
    "MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD": "false",
    "MLFLOW_ENABLE_PROXY_MULTIPART_DOWNLOAD": "false",
}


@contextmanager
def mlflow_environment(timeout_s: float) -> Iterator[None]:
    """Import and use MLflow in here, and only in here: silent, and with limits to its requests.

    The environment is put back afterwards, so that no child inherits it.
    """
    # Whole seconds; 0 would mean no limit.
    wanted = ENVIRONMENT | {TIMEOUT: str(math.ceil(timeout_s))}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ |= wanted
    disabled = logging.root.manager.disable
    # MLflow, Alembic and SQLAlchemy tell the terminal about tables and retries.
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def environment_for(location: StoreLocation, login: Mapping[str, str], home: str) -> dict[str, str]:
    """The whole environment of a process that runs MLflow: nothing that it does not need.

    MLflow would offer what it finds there, and in files of the home folder, to whatever address a
    store's entries name. `login` is that of the server that the person named; `home` is an empty
    folder, in place of the home folder where that is not needed.
    """
    kept = {name: value for name, value in os.environ.items() if _is_kept(name, location)}
    if path := kept.get("PYTHONPATH"):
        # The process works in another folder.
        parts = path.split(os.pathsep)
        kept["PYTHONPATH"] = os.pathsep.join(str(Path(part).absolute()) for part in parts)
    if location.served or location.database is not None:
        # Other databases read a login there, as `~/.pgpass`. Packages that are installed for this
        # user are found all the same.
        kept |= {"HOME": home, "PYTHONUSERBASE": site.getuserbase()}
    return {**kept, **ENVIRONMENT, **login}


def _is_kept(name: str, location: StoreLocation) -> bool:
    if name in _KEPT or name.startswith(("PYTHON", "LC_")):
        return True
    if name.lower() in _PROXIES:
        # A proxy of other machines would be given this one's login.
        return not is_loopback(location.uri)
    if location.served:
        return name in _CERTIFICATES
    prefix = next((_OWN[kind] for kind in _OWN if location.uri.startswith(kind)), None)
    return name == "HOME" or (prefix is not None and name.startswith(prefix))


# Where MLflow looks for them.
TOKEN = "MLFLOW_TRACKING_TOKEN"  # noqa: S105  a name
USERNAME = "MLFLOW_TRACKING_USERNAME"
PASSWORD = "MLFLOW_TRACKING_PASSWORD"  # noqa: S105  a name


def login(settings: MlflowTracking) -> dict[str, str]:
    """MLflow's own variables for the login of a server; empty where none is used.

    Where none is configured, those that the environment holds for MLflow are used. Where one is,
    they are not: a user there would win over the token.

    Raises InputError: a variable is not set, or holds what no HTTP header can; or the login would
    go to another machine unprotected. It is not shown.
    """
    if not (settings.uri or "").startswith(("http://", "https://")):
        return {}
    if settings.token_env or settings.username_env:
        values = {
            TOKEN: read_secret(settings.token_env, "tracking.token_env"),
            USERNAME: read_secret(settings.username_env, "tracking.username_env"),
            PASSWORD: read_secret(settings.password_env, "tracking.password_env"),
        }
    else:
        values = {name: os.environ.get(name) for name in (TOKEN, USERNAME, PASSWORD)}
        if secret := next((name for name in (TOKEN, PASSWORD) if values[name]), None):
            try:
                settings.check_login(secret)
            except ValueError as error:
                raise InputError(f"tracking.{error}; or unset {secret}") from error
    return {name: value for name, value in values.items() if value}


def secrets(variables: Mapping[str, str]) -> list[str]:
    """What must not be shown of a login, in every form in which it is sent."""
    user, password = variables.get(USERNAME), variables.get(PASSWORD)
    pair = b64encode(f"{user}:{password}".encode()).decode() if password else None
    return [secret for secret in (variables.get(TOKEN), pair, password) if secret]


HOST = "127.0.0.1"
# It takes 4 s on an idle machine.
START_TIMEOUT_S = 90
STOP_TIMEOUT_S = 5
# The queue of background jobs takes 13 more processes and 2 GB, and nothing here needs it.
_NO_JOBS = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}


@dataclass(frozen=True, slots=True)
class UserInterface:
    """A child that is starting, or answers at `address`.

    Raises TrackingError: from both methods: the child ended, or does not answer in time.
    """

    address: str
    process: subprocess.Popen[bytes]
    output: IO[bytes]

    def wait_until_up(self) -> None:
        """Wait for the first answer."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while self.process.poll() is None:
            try:
                ask_health(self.address, timeout_s=1)
            except TrackingError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return
        self.wait_until_over()

    def wait_until_over(self) -> NoReturn:
        """Wait until somebody interrupts us."""
        status = self.process.wait()
        self.output.seek(0)
        lines = self.output.read().decode(errors="replace").strip().splitlines() or [""]
        raise TrackingError(f"mlflow ui ended with status {status}: {lines[-1]}")


@contextmanager
def user_interface(location: StoreLocation, port: int) -> Iterator[UserInterface]:
    """Start the user interface of a database; it is ended on the way out."""
    # MLflow starts another Python, whose server looks for modules in its folder whatever we say.
    with TemporaryFile() as output, TemporaryDirectory() as folder, safe_environment():
        process = subprocess.Popen(
            _command(location, port),
            cwd=folder,
            env=environment_for(location, {}, folder) | _NO_JOBS,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # A group of its own: Ctrl-C reaches us alone, and we end all of it.
            start_new_session=True,
        )
        try:
            yield UserInterface(f"http://{HOST}:{port}", process, output)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(STOP_TIMEOUT_S)
            finally:
                # Its worker outlives it now and then.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _command(location: StoreLocation, port: int) -> list[str]:
    artifacts = ["--artifacts-destination", location.artifacts] if location.artifacts else []
    command = [*python_module("mlflow"), "ui", "--backend-store-uri", location.uri, *artifacts]
    return [*command, "--host", HOST, "--port", str(port), "--workers", "1"]
