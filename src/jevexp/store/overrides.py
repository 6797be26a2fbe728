"""What was typed for some runs and not for others."""

from collections.abc import Sequence

from jevexp.store.manifest import Manifest


def differing_overrides(manifests: Sequence[Manifest]) -> list[dict[str, str]]:
    """For each run its overrides that are not the same in all of them, in the order typed."""
    given = [_overrides(manifest) for manifest in manifests]
    fields = dict.fromkeys(field for one in given for field in one)
    varying = [field for field in fields if len({one.get(field) for one in given}) > 1]
    return [{field: one[field] for field in varying if field in one} for one in given]


def _overrides(manifest: Manifest) -> dict[str, str]:
    pairs = (override.partition("=") for override in manifest.config.overrides)
    return {field: value for field, _, value in pairs}
