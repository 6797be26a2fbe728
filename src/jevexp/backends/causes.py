"""Why a service gave no answer, in its own words where it has some, and what to do about it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from jevexp.backends.bodies import error_part
from jevexp.backends.transport import CLOSED, NO_HTTP
from jevexp.core.decision import ERROR_BODY
from jevexp.core.json import dumps
from jevexp.untrusted.addresses import is_loopback, redacted
from jevexp.untrusted.console import printable, shortened

_MOST_WORDS = 80
_PAGE = re.compile(r"\s*<(!doctype html|html|head|body)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)
_WANTS_TLS = re.compile(r"http request.*https|requires? (tls|ssl|https)", re.IGNORECASE)
_OF_TLS = frozenset({"certificate_refused", "tls_failed"})
# What can be pasted into any shell as it is.
_PLAIN_ADDRESS = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~-]+)*/?")
_WAIT = re.compile(r"[0-9]{1,9}")
# Where an error's message stands, in bodies as services make them.
_MESSAGES = ("message", "detail", "error_description", "title", "msg")
# What a task, the model or the service is like; asking again changes nothing about it.
_LASTING_CODES = frozenset(
    (
        "options_unknown", "too_many_options", "candidate_not_one_token", "not_a_decision_model",
        "bad_answer_legend", "no_logprobs",
    )
)  # fmt: skip


def key_advice(field: str, key_env: str | None) -> str:
    """What to do about a refused key, which the variable `key_env` holds, if there is any."""
    if key_env is None:
        return f"set {field} to the environment variable that holds its API key"
    return f"check the API key in the environment variable {key_env}"


@dataclass(frozen=True, slots=True)
class Service:
    """Where it was asked: `url` is None where there is no address to change.

    `at` is the group of settings that holds `base_url` and `key_env`.
    """

    url: str | None
    at: str
    key_env: str | None


@dataclass(frozen=True, slots=True)
class Failed:
    """A request that brought no answer: its code, its HTTP status, and what is kept of it."""

    code: str
    status: int | None
    evidence: Any

    @property
    def cause(self) -> str:
        """The code and what is told of it, such as `http_error (HTTP 402: no credits left)`."""
        told = ": ".join(filter(None, [f"HTTP {self.status}" if self.status else "", self.words]))
        return f"{self.code} ({told})" if told else self.code

    @property
    def words(self) -> str:
        """What the service says, else the connection, on one short line; empty for nothing."""
        body = self._part("body")
        if self.is_page:
            title = _TITLE.search(body) if isinstance(body, str) else None
            words = title[1] if title else "a web page"
        elif isinstance(body, str):
            words = body
        else:
            words = _message(error_part(body)) or _message(body) or _text(self._part("reason"))
        return shortened(printable(" ".join(redacted(words).split())), _MOST_WORDS)

    @property
    def is_page(self) -> bool:
        """Whether a web page came."""
        body = self._part("body")
        if isinstance(body, Mapping):
            return "sha256" in body and body.get("content_type") == "text/html"
        return isinstance(body, str) and _PAGE.match(body) is not None

    @property
    def refused(self) -> bool:
        """Whether the key is not taken."""
        return self.status in (401, 403) or self.code in (f"{ERROR_BODY}_401", f"{ERROR_BODY}_403")

    @property
    def of_the_place(self) -> bool:
        """Whether another address, key or certificate can help."""
        away = self.status in (404, 405) and not self._names_model
        return self.refused or self._redirected or self.is_page or away or self.code in _OF_TLS

    @property
    def lasts(self) -> bool:
        """Whether the same request would fail again, with everything as it is."""
        return self.of_the_place or self.code in _LASTING_CODES or self.status in (404, 405, 501)

    @property
    def _redirected(self) -> bool:
        return self.status is not None and 300 <= self.status < 400

    @property
    def _names_model(self) -> bool:
        return "model" in self.words.lower()

    def todo(self, service: Service) -> str | None:
        """What a person can do about it, on one line; None where nothing is known."""
        advice = (
            self._of_the_key,
            self._of_the_connection,
            self._of_the_address,
            self._of_the_answer,
        )
        return next((line for advise in advice for line in advise(service)), None)

    def _of_the_key(self, service: Service) -> Iterator[str]:
        if self.refused:
            yield key_advice(f"{service.at}.key_env", service.key_env)
        if _WAIT.fullmatch(wait := self._header("retry-after")):
            yield f"it asks to wait {wait} s before the next request"

    def _of_the_connection(self, service: Service) -> Iterator[str]:
        field, url = f"{service.at}.base_url", service.url or ""
        if self.code == "certificate_refused":
            if "not valid for" in self.words:
                yield f"set {field} to a name that its certificate is for"
            elif "expired" in self.words or "not yet valid" in self.words:
                yield "it needs another certificate"
            else:
                yield (
                    "export SSL_CERT_FILE=FILE with the certificate of who signed its own, which "
                    "is its own where it is self-signed"
                )
        scheme, _, rest = url.partition("://")
        if self.code == "tls_failed" and url:
            plain = f"set {field}=http://{rest} if it speaks plain http"
            yield plain if is_loopback(url) else "name the port at which it speaks https"
        if scheme == "http" and (_WANTS_TLS.search(self.words) or self.words in (CLOSED, NO_HTTP)):
            yield f"set {field}=https://{rest} if it speaks https"

    def _of_the_address(self, service: Service) -> Iterator[str]:
        url = (service.url or "").rstrip("/")
        if not url:
            return
        field, endpoint = f"{service.at}.base_url", _text(self._part("endpoint"))
        location = _joined(url + endpoint, self._header("location"))
        if self._redirected and location != url + endpoint:
            base = location.removesuffix(endpoint)
            pasted = base != location and _PLAIN_ADDRESS.fullmatch(base)
            todo = f"; set {field}={base} if you trust it" if pasted else ""
            yield f"it redirects to {_host(location)}, and redirects are not followed{todo}"
        elif self.status in (404, 405) and self._names_model:
            yield "set model.alias to a model that it has"
        elif self.is_page or self.status in (404, 405):
            path = f"its API is not at {url}{endpoint}"
            without = url.removesuffix("/v1")
            if without != url:
                yield f"{path}: set {field}={without}, as the rest of the path is added"
            else:
                yield f"{path}: set {field} to the address up to {endpoint or 'the path'}"

    def _of_the_answer(self, service: Service) -> Iterator[str]:
        body = self._part("body")
        if self.status == 501:
            start = "start it with" if service.url is None else "start or choose one with"
            yield f"that server cannot do this: {start} the options that its words name"
        packed = self._header("content-encoding")
        if packed and isinstance(body, Mapping) and "sha256" in body:
            yield f"it packs answers as {packed}, which nobody asked for: turn that off there"
        match body:
            case {"completion_probabilities": [{"probs": list()}, *_]}:
                yield "that llama.cpp is older than December 2024: update it"
        if self.code == "options_unknown":
            yield "the task names no options: give it criteria in the file of dataset.path"
        if self.code == "bad_answer_legend" and '"legend"' not in dumps(body):
            yield "the service sends no legend: it cannot be asked score tasks"

    def _part(self, name: str) -> Any:
        return self.evidence.get(name) if isinstance(self.evidence, Mapping) else None

    def _header(self, name: str) -> str:
        headers = self._part("headers")
        text = _text(headers.get(name)) if isinstance(headers, Mapping) else ""
        return shortened(printable(" ".join(redacted(text).split())), 4 * _MOST_WORDS)


def _joined(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError:
        return location


def _host(location: str) -> str:
    try:
        return urlsplit(location).hostname or "no host"
    except ValueError:
        return "no address"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _message(part: Any) -> str:
    """The message in an error, which is a text, an object, or a list of such."""
    if isinstance(part, list):
        return _message(part[0]) if part else ""
    if isinstance(part, Mapping):
        return next(filter(None, (_message(part.get(name)) for name in _MESSAGES)), "")
    return _text(part)
