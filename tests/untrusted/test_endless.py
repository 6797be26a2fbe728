"""A file without an end costs neither the memory nor the time that it claims."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A document of 64 MiB is read before it is known to be longer, and the interpreter needs its own.
MEMORY = 600 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="counts memory as Linux does")
def test_no_reader_takes_in_a_file_without_an_end(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.untrusted.endless", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    said, peak = json.loads(done.stdout)
    assert len(said) == 7
    assert all("long" in line for line in said.values()), said
    assert peak < MEMORY
