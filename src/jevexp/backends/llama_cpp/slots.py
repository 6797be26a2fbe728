"""The slots of a llama.cpp server, made to forget what was asked before."""

from collections.abc import Mapping
from typing import Any

from jevexp.backends.transport import Failure, Transport
from jevexp.core.decision import Request

# The cheapest first. Erasing takes about a millisecond, and a folder that the server may save slots
# in; another prompt takes as long as the model needs for one token. An encoder takes none.
_WAYS = ("erase", "other_prompt")
# Far above any real server; emptying takes a request for each.
_MOST_SLOTS = 1 << 10


class Slots:
    """A server's slots; `way` is how they are emptied, None where this server cannot be made to.

    `count` and `vocabulary`, the number of tokens in it, are as the server says them.
    """

    def __init__(
        self,
        transport: Transport,
        route: Mapping[str, str],
        count: int | None,
        vocabulary: Any,
    ) -> None:
        self._transport = transport
        self._route = dict(route)
        self._count = count if count is not None and count <= _MOST_SLOTS else 0
        # As good as no prompt begins with the vocabulary's last token.
        self._other = [vocabulary - 1] if type(vocabulary) is int else None
        self._empty = False
        self.way = next((way for way in _WAYS if self._emptied(way)), None)

    def prepare(self, _request: Request) -> None:
        """Empty them before a task's clock starts."""
        self._empty = self._emptied(self.way)

    def empty(self) -> bool:
        """Whether they are empty, emptied now where nobody did before; they are in use then."""
        empty, self._empty = self._empty or self._emptied(self.way), False
        return empty

    def _emptied(self, way: str | None) -> bool:
        if self._count < 1 or (way == "other_prompt" and self._other is None):
            return False
        try:
            for slot in range(self._count):
                if way == "erase":
                    self._transport.post(f"/slots/{slot}?action=erase", self._route)
                else:
                    body = {"prompt": self._other, "n_predict": 0, "cache_prompt": False}
                    self._transport.post("/completion", body | {"id_slot": slot} | self._route)
        except Failure:
            return False
        return True
