"""A receipt: hashes and numbers of one run in one small file, without any task's text."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from jevexp.core.json import dumps, loads
from jevexp.errors import InputError
from jevexp.store import RunDirectory
from jevexp.store.checksums import CHECKSUMS, file_sha256
from jevexp.store.directory import LEDGER, MANIFEST, RAW, RESULTS, SUMMARY
from jevexp.untrusted.console import printable_json
from jevexp.untrusted.files import read_document
from jevexp.verification.check import Check, Report
from jevexp.verification.context import read_tree

VERSION = 1
RECEIPT = "receipt"
_FILES = (CHECKSUMS, MANIFEST, RESULTS, SUMMARY, LEDGER)
_NUMBERS = ("n_planned", "n_attempted", "n_scorable", "n_correct", "accuracy", "macro_accuracy",
            "brier_mean", "ordinal_mae", "ece")  # fmt: skip
_MOST_BYTES = 1 << 20


def make_receipt(root: Path) -> dict[str, Any]:
    """The receipt of a run directory that was verified; the same for the same bytes, wherever.

    `files` are SHA-256 hashes of whole files, null where a run has none. `raw.sha256` is that of
    one line a raw file, sorted by name: its SHA-256, two spaces, its name, a newline.

    Raises:
        InputError: manifest or summary is not what it has to be.
        OSError: a file cannot be read.
    """
    tree = read_tree(root)
    directory = RunDirectory(root)
    manifest = directory.read_manifest()
    summary = directory.read_summary()
    listing = hashlib.sha256()
    raw = sorted(tree.below(RAW))
    for name in raw:
        listing.update(f"{file_sha256(root / RAW / name)}  {name}\n".encode())
    return {
        "receipt": VERSION,
        "run": manifest.run,
        "status": manifest.status.value,
        "stop_reason": manifest.stop_reason,
        "files": {
            name: file_sha256(root / name) if name in tree.files else None for name in _FILES
        },
        "raw": {"files": len(raw), "sha256": listing.hexdigest()},
        "dataset": {
            "name": manifest.dataset.name,
            "dataset_hash": manifest.dataset.dataset_hash,
            "n_tasks": manifest.dataset.n_tasks,
        },
        "config_sha256": manifest.config.sha256,
        "fingerprint": manifest.fingerprint.value if manifest.fingerprint else None,
        "identity": manifest.identity.status.value if manifest.identity else None,
        "model": manifest.model.requested,
        "backend": manifest.backend.name,
        # Receipts of earlier versions stay those of their runs.
        "counts": manifest.counts.model_dump(mode="json", exclude={"truncated"}),
        "numbers": {name: summary and summary.number(name) for name in _NUMBERS},
        "charged_usd": manifest.ledger.charged_by_run_usd,
        "versions": {
            "manifest": manifest.version,
            "harness": manifest.harness.model_dump(mode="json"),
            "jevexp": manifest.software.jevexp,
            "git_commit": manifest.software.git_commit,
            "python": manifest.software.python,
        },
    }


def write(receipt: dict[str, Any]) -> str:
    """The receipt's text, with its newline."""
    return f"{printable_json(dumps(receipt, indent=2, sort_keys=True))}\n"


def read_receipt(path: Path) -> dict[str, Any]:
    """A receipt from a file; raises InputError: it is no receipt, or one of another version."""
    try:
        receipt = loads(read_document(path, most=_MOST_BYTES))
    except OSError as error:
        raise InputError(f"--receipt: {path}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"--receipt: {path}: not a receipt: {error}") from error
    if not isinstance(receipt, dict) or "receipt" not in receipt:
        raise InputError(f"--receipt: {path}: not a receipt; `jevexp receipt RUN` prints one")
    if receipt["receipt"] != VERSION:
        raise InputError(
            f"--receipt: {path}: of version {receipt['receipt']!r}, this jevexp reads {VERSION}"
        )
    return receipt


def check_receipt(report: Report, receipt: dict[str, Any]) -> Report:
    """The report with one more check: every field of the receipt is the directory's own."""
    check = Check(RECEIPT, f"hashes and numbers of the receipt, that of {CHECKSUMS} included")
    with check.guarded(MANIFEST):
        fields = dict(_leaves(make_receipt(report.path)))
        expected = dict(_leaves(receipt))
        for name in dict.fromkeys([*expected, *fields]):
            check.count += 1
            if dumps(fields.get(name)) != dumps(expected.get(name)) or name not in fields:
                file = name.removeprefix("files.") if name.startswith("files.") else MANIFEST
                check.fail(file, f"{name}: is not as in the receipt")
    not_covered = tuple(name for name in report.not_covered if name != CHECKSUMS)
    return replace(report, checks=(*report.checks, check), not_covered=not_covered)


def _leaves(value: dict[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    for name, part in value.items():
        if isinstance(part, dict):
            yield from _leaves(part, f"{at}{name}.")
        else:
            yield f"{at}{name}", part
