"""Which addresses may get a key: https, this machine, or what a person trusts."""

import ipaddress
import re
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

# Where programs disagree about what the host of an address is.
_AMBIGUOUS = re.compile(r"[\s\x00-\x20\x7f\\]")
_HTTP = ("http://", "https://")
# Options of PostgreSQL's client that name a host.
_ELSEWHERE = frozenset({"host", "hostaddr", "service"})
# As SQLAlchemy reads a login: a password may hold slashes, which ends the host for others.
_LOGIN = re.compile(r"(?P<scheme>[A-Za-z][\w+.-]*://)(?P<login>[^:/@?#]*(?::\S*)?)@")
_VALUE = re.compile(r"(?<=[?&;#])(?P<name>[^=&;#\s]*)=(?P<value>[^&;#\s]*)")
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://\S+")
_SECRET_WORDS = ("password", "passwd", "passphrase", "pwd", "secret", "token", "credential",
                 "apikey", "accesskey", "authkey", "signature", "odbcconnect")  # fmt: skip
_SECRET_NAMES = frozenset({"auth", "key", "pass", "pw", "sig"})
# Files, as PostgreSQL's client takes them.
_HARMLESS = frozenset({"passfile", "sslkey"})
_MOST_LAYERS = 3


def check_address(
    url: str,
    *,
    allow_http: bool,
    field: str = "base_url",
    key_field: str | None = "key_env",
    way_out: str | None = "set allow_http=true",
) -> None:
    """Refuse a server's address that is malformed, holds a login, or must not be sent a key.

    Args:
        url: the address, up to its path.
        allow_http: whether a person said that plain http may reach another machine.
        field: which field holds the address, for messages.
        key_field: which field names the variable that holds the key, for messages; None: no key.
        way_out: how a person allows http, for messages; None: there is no way.

    Raises ValueError: the message begins with `field`, as validators' messages do. The address is
    not shown: what makes it wrong may be a password.
    """
    if not url.startswith(_HTTP) or not _is_plain_url(url):
        place = f"; a key goes into the environment variable that {key_field} names"
        raise ValueError(
            f"{field}: expected http(s)://HOST[:PORT][/PATH] without user, query or fragment"
            f"{place if key_field else ''}"
        )
    if _is_everywhere(url):
        raise ValueError(
            f"{field}: a server listens on that host, and nothing can be asked there; write "
            "127.0.0.1 for one on this machine, else the name of its machine"
        )
    if url.startswith("http://") and not (allow_http or is_loopback(url)):
        allow = f", or {way_out} in a network that you trust"
        raise ValueError(
            f"{field}: plain http reaches another machine unprotected; use https"
            f"{allow if way_out else ''}"
        )


def check_database_address(url: str, *, field: str, login_field: str) -> None:
    """Refuse a database's address that a password would be sent to without anybody's decision.

    PostgreSQL's client asks for TLS and goes on without it; `sslmode` in the address is how a
    person decides, either way.

    Raises ValueError: the message begins with `field`. The address is not shown.
    """
    parts = _parts(url)
    options = parse_qs(parts.query) if parts is not None else {}
    # What the query names wins over the host; without any, a socket of this machine is used.
    elsewhere = parts is None or not _ELSEWHERE.isdisjoint(options)
    host = parts.hostname if parts is not None else None
    here = not elsewhere and (host is None or _is_loopback_host(host))
    if not here and "sslmode" not in options:
        raise ValueError(
            f"{field}: the password of {login_field} would go to another machine, perhaps "
            "unprotected; add ?sslmode=verify-full to the address, or another sslmode in a network "
            "that you trust"
        )


def holds_password(url: str) -> bool:
    """Whether an address holds a password: before the host, or in a value that is named like one.

    Names are compared as they are once decoded, so that `pass%77ord=` is one too.
    """
    parts = _parts(url)
    login = _LOGIN.match(url)
    if login is not None and ":" in unquote(login["login"]):
        return True
    # A port that is no number is the start of a password with a slash in it.
    if parts is None or parts.password is not None:
        return True
    return any(_is_secret(value["name"]) for value in _VALUE.finditer(url))


def redacted(text: str) -> str:
    """A text in which no address shows a password, or a value that is named like one."""

    def without_password(login: re.Match[str]) -> str:
        user, colon, _ = login["login"].partition(":")
        if colon:
            user = f"{user}:***"
        elif ":" in unquote(user):
            user = "***"
        return f"{login['scheme']}{user}@"

    def without_value(value: re.Match[str]) -> str:
        return f"{value['name']}=***" if _is_secret(value["name"]) else value[0]

    return _ADDRESS.sub(
        lambda url: _VALUE.sub(without_value, _LOGIN.sub(without_password, url[0])), text
    )


def _is_secret(name: str) -> bool:
    for _ in range(_MOST_LAYERS):
        name = unquote(name)
    plain = re.sub(r"[^a-z]", "", name.casefold())
    if plain in _HARMLESS:
        return False
    return plain in _SECRET_NAMES or any(word in plain for word in _SECRET_WORDS)


def _is_plain_url(url: str) -> bool:
    """Whether a URL names a host, and nothing beyond host, port and path."""
    parts = _parts(url)
    if parts is None or not parts.hostname or _AMBIGUOUS.search(url):
        return False
    return not any(mark in url for mark in "?#") and "@" not in parts.netloc


def _is_everywhere(url: str) -> bool:
    """Whether a URL names all addresses of a machine, as 0.0.0.0 does."""
    parts = _parts(url)
    try:
        return parts is not None and ipaddress.ip_address(parts.hostname or "").is_unspecified
    except ValueError:
        return False


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine."""
    parts = _parts(url)
    return parts is not None and _is_loopback_host(parts.hostname or "")


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises where the port is no number
    except ValueError:
        return None
    return parts


def _is_loopback_host(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def proxy_for(url: str) -> str | None:
    """The proxy that `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` name for a URL."""
    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return proxy if proxy is None or "://" in proxy else f"http://{proxy}"


def named_proxy(url: str | None) -> str | None:
    """`proxy_for` as evidence may name it: scheme, host and port, and no credentials."""
    proxy = proxy_for(url) if url else None
    if proxy is None:
        return None
    parts = _parts(proxy)
    if parts is None:
        return "not an address"
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"
