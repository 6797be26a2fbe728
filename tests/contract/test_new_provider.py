"""What a new provider takes: its own module, its own settings, one line where providers are listed.

The three are added to a copy of the program the way a person would, and a run is made and verified
with that copy.
"""

import importlib
import json
import shutil
from pathlib import Path
from typing import get_args

import pytest

from jevexp.settings import PROVIDERS, Provider
from tests.support.copied_program import CopiedProgram
from tests.support.forgery import edit_raw, reseal
from tests.support.scripted_llama import Answer, scripted_llama

SETTINGS = '''
"""A service that answers with one weight for each option."""

from typing import Literal

from jevexp.settings.backends import HttpBackend


class WeighingBackend(HttpBackend):
    """A service at `POST {base_url}/weigh`; weights are raised to the power of `sharpness`."""

    kind: Literal["weighing"]
    sharpness: float
'''

MODULE = '''
"""A service that answers with one weight for each option."""

from pathlib import Path

from jevexp.backends.connection import Connected, connect
from jevexp.backends.rereading import AnswerReader, RecordedTransport
from jevexp.backends.transport import Failure, http_error
from jevexp.core.decision import Decision


def make(settings, model, tasks):
    """The provider, not opened yet."""
    return Weighing(settings, model)


def reader(settings, description):
    """Reads recorded answers by the code that read them first."""
    return AnswerReader(
        lambda request, raw: ask(RecordedTransport(raw, http_error), request, settings)
    )


class Weighing(Connected):
    """The provider."""

    def _open(self, log_directory: Path):
        connection = self._hold(connect(self._settings, log_directory))
        self._facts = {"kind": self._settings.kind, "model": "scale-1"}
        self._ask = lambda request: ask(connection.transport, request, self._settings)


def ask(transport, request, settings):
    """Put one request to the service."""
    sent = request.wire()
    try:
        reply = transport.post("/weigh", sent)
    except Failure as failure:
        return Decision(ok=False, model="scale-1", error=failure.code, status_code=failure.status,
                        request=sent, response=failure.evidence)
    weights = [weight**settings.sharpness for weight in reply.body["weights"]]
    return Decision(
        ok=True,
        model="scale-1",
        probs={
            option: weight / sum(weights)
            for option, weight in zip(request.question.options, weights, strict=True)
        },
        status_code=reply.status,
        request=sent,
        response=reply.evidence("/weigh"),
    )
'''

LINE = '    Provider("jevexp.settings.weighing:WeighingBackend", "jevexp.backends.weighing"),'

OPTION = """
name: weighing
kind: weighing
base_url: ???
key_env: null
header_env: {}
allow_http: false
connect_timeout_s: 2.0
timeout_s: 5.0
server: {command: null, start_timeout_s: 1.0}
sharpness: 2.0
"""


def program_with_the_provider(place: Path) -> CopiedProgram:
    """A copy of the program with the provider in it."""
    program = CopiedProgram(place)
    (program.package / "settings" / "weighing.py").write_text(SETTINGS)
    (program.package / "backends" / "weighing.py").write_text(MODULE)
    (program.conf / "backend" / "weighing.yaml").write_text(OPTION)
    program.add_line("settings/providers.py", "PROVIDERS = (", LINE)
    return program


def test_a_new_provider_takes_its_module_its_settings_and_one_line(tmp_path: Path) -> None:
    program = program_with_the_provider(tmp_path)
    run, other = str(tmp_path / "run"), str(tmp_path / "forged")
    weighing = ("dataset=demo", "caps.limit=2", "tracking=none", "model=unclaimed",
                "model.alias=scale", "backend=weighing")  # fmt: skip
    with scripted_llama() as server:
        server.answers["/weigh"] = lambda body: Answer({"weights": [1.0, 3.0]})
        address = f"backend.base_url={server.url}"
        made, verified, mistyped = program.run(
            [*weighing, address, f"hydra.run.dir={run}"],
            ["verify", run],
            [*weighing, address, "backend.sharpnes=1"],
        )

    assert made.status == 0, made.err
    assert verified.status == 0, verified.err
    assert mistyped.status == 2
    assert "backend.sharpness" in mistyped.err
    manifest = json.loads(Path(run, "manifest.json").read_text())
    assert manifest["backend"]["description"] == {"kind": "weighing", "model": "scale-1"}
    (first, *_) = Path(run, "results.jsonl").read_text().splitlines()
    assert json.loads(first)["probs"] == {"no": 0.1, "yes": 0.9}

    # Its own code reads its raw answers again, so that a forged one does not fit its record.
    forged = Path(shutil.copytree(run, other))
    edit_raw(forged, 0, lambda raw: raw["response"]["body"].update(weights=[3.0, 1.0]))
    reseal(forged)
    assert program.run(["verify", other])[0].status == 1


def test_every_kind_of_backend_is_listed_once() -> None:
    kinds = [get_args(provider.settings.model_fields["kind"].annotation) for provider in PROVIDERS]
    assert len(set(kinds)) == len(PROVIDERS)
    assert ("fake",) in kinds


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.module)
def test_every_module_that_is_listed_makes_and_reads_a_provider(provider: Provider) -> None:
    module = importlib.import_module(provider.module)
    assert callable(module.make)
    assert callable(module.reader)
