"""Any service that speaks the System One wire."""

from typing import Literal

from jevexp.settings.http import HttpBackend


class SystemOneBackend(HttpBackend):
    """A service at `POST {base_url}/v1/systemone`: TypeSafe's own, or any compatible server."""

    kind: Literal["systemone"]
