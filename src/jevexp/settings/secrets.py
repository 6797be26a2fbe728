"""Secrets come from environment variables that the configuration names, and from nowhere else."""

import os

from jevexp.errors import InputError


def read_secret(variable: str | None, field: str) -> str | None:
    """The value of an environment variable, for use in an HTTP header; None where none is named.

    Args:
        variable: the variable's name, as configured.
        field: the field that names it, for messages.

    Raises:
        InputError: the variable is not set, or holds what no HTTP header can. The value is not
            shown.
    """
    if variable is None:
        return None
    secret = os.environ.get(variable, "")
    if not secret:
        raise InputError(
            f"{field}: {variable} is not set; export it with the secret that the server wants, or "
            "set the field to null"
        )
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise InputError(
            f"{field}: {variable} holds characters that no HTTP header can hold; export it again"
        )
    return secret
