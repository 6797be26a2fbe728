"""Nobody waits for numpy before somebody claims or reads something that needs it."""

import subprocess
import sys
from pathlib import Path

OFFLINE = """
import sys
from jevexp.identity import fingerprint, model_config, observe, reconcile
from tests.support.compose import compose

settings = compose("dataset=demo", "backend=fake", "model=fake")
description = {"kind": "fake", "model": "fake"}
report = reconcile(settings.model, observe(description))
fingerprint(description, report)
report.model_dump(mode="json"), model_config(observe(description), "fake")
print(sorted({"gguf", "numpy", "mlflow"} & set(sys.modules)))
"""


def test_an_offline_run_needs_no_heavy_library() -> None:
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
