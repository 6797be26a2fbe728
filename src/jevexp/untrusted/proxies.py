"""Which proxy of the environment stands between us and a server."""

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from jevexp.untrusted.addresses import is_loopback


def proxy_for(url: str) -> str | None:
    """The proxy that `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` name for a URL."""
    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    return found if found is None or "://" in found else f"http://{found}"


def named_proxy(url: str | None) -> str | None:
    """`proxy_for` as evidence may name it: scheme, host and port, and no credentials."""
    found = proxy_for(url) if url else None
    if found is None:
        return None
    try:
        parts = urlsplit(found)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}"
    except ValueError:
        return "not an address"
