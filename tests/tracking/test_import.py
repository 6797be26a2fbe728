"""Starting up does not wait for MLflow."""

import subprocess
import sys


def test_importing_tracking_does_not_import_mlflow() -> None:
    code = "import jevexp.tracking, sys; print('mlflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
