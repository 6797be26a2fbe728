"""A distribution over the options, out of the tokens that a server lists for one position.

Adding the same B to the logit of every candidate leaves the ratios between candidates as they
are, so their probabilities divided by their sum are the softmax over the candidates. With s the
sum that the server reports and m the candidates' share without the bias,

    s = m·e^B / (m·e^B + 1 - m),  hence  m = s / (s + (1 - s)·e^B).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from jevexp.backends.transport import Failure

READOUT_VERSION = "1"
# Strong enough to lift any candidate into the list; too strong to tell the mass outside them.
MISSING_BIAS = 100.0
# Above this bias, 1 - s drowns in the server's single precision.
LARGEST_TELLING_BIAS = 20.0
# How far rounding carries one probability, or a sum of biased ones, past 1.
SLACK = 1e-3
# The same for probabilities that were read one by one, by servers that compute in half precision.
_UNBIASED_SLACK = 1e-2
# What adding up single-precision numbers is off by. A sum further past 1 does not tell the rest.
SUM_ERROR = 1e-6


@dataclass(frozen=True, slots=True)
class Candidate:
    """One option's symbol, and its token's id where that is known."""

    text: str
    id: int | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One listed token: its id where the server says it, its text where it says that.

    `listed_probability` is the probability as the server lists it, None where it lists logarithms.
    """

    id: int | None
    text: str | None
    logprob: float
    listed_probability: float | None = None

    @property
    def probability(self) -> float:
        """The probability as listed, else the one that the logarithm is of."""
        listed = self.listed_probability
        return math.exp(self.logprob) if listed is None else listed


def logprob_of(probability: float) -> float:
    """The logarithm of a listed probability; raises ValueError where it is none."""
    if not 0 <= probability <= 1 + SLACK:
        raise ValueError("a probability out of range")
    return math.log(probability) if probability > 0 else -math.inf


@dataclass(frozen=True, slots=True)
class Listing:
    """The listed tokens; `sampled` is the predicted one, and among `entries` where it is known."""

    entries: tuple[Entry, ...]
    sampled: Entry | None = None

    @property
    def has_ids(self) -> bool:
        """Whether every token comes with its id."""
        return all(entry.id is not None for entry in self.entries)

    def find(self, candidate: Candidate) -> Entry | None:
        """A candidate's token; None where it is not listed.

        Raises ValueError where several listed tokens could be it, with different probabilities.
        """
        if candidate.id is not None and self.has_ids:
            matching = [entry for entry in self.entries if entry.id == candidate.id]
        else:
            matching = [entry for entry in self.entries if entry.text == candidate.text]
        if len({entry.logprob for entry in matching}) > 1:
            raise ValueError("listed twice")
        return matching[0] if matching else None

    def predicts(self, candidate: Candidate) -> bool:
        """Whether the predicted token is a candidate's."""
        if self.sampled is None:
            return False
        by_id = self.sampled.id == candidate.id
        return by_id if self.has_ids else self.sampled.text == candidate.text


@dataclass(frozen=True, slots=True)
class Readout:
    """`shares` are the candidates', in their order; the masses are of the whole vocabulary.

    A mass is None where the server's numbers do not tell it.
    """

    shares: tuple[float, ...]
    candidate_mass: float | None
    off_option_mass: float | None


def read_biased(probabilities: Sequence[float], bias: float) -> Readout:
    """The readout of the candidates' probabilities, as they are with `bias`.

    Raises ValueError where they cannot be probabilities.
    """
    total = math.fsum(probabilities)
    if not 0 < total < 1 + SLACK:
        raise ValueError("probabilities out of range")
    shares = tuple(value / total for value in probabilities)
    if bias > LARGEST_TELLING_BIAS or total > 1 + SUM_ERROR:
        return Readout(shares, None, None)
    outside = max(0.0, 1.0 - total) * math.exp(bias)
    return Readout(shares, total / (total + outside), outside / (total + outside))


def read_unbiased(logprobs: Sequence[float]) -> Readout:
    """The readout of log-probabilities without a bias: their softmax, and their mass as it is.

    Raises ValueError where they cannot be of one distribution.
    """
    largest = max(logprobs)
    mass = math.fsum(math.exp(logprob) for logprob in logprobs)
    if largest == -math.inf or mass > 1 + _UNBIASED_SLACK:
        raise ValueError("probabilities out of range")
    weights = [math.exp(logprob - largest) for logprob in logprobs]
    total = math.fsum(weights)
    shares = tuple(weight / total for weight in weights)
    if mass > 1 + SUM_ERROR:
        return Readout(shares, None, None)
    mass = min(mass, 1.0)
    return Readout(shares, mass, 1.0 - mass)


class Tokenizer(Protocol):
    """A server's tokenizer."""

    def __call__(self, text: str, *, special: bool = True) -> list[int]:
        """The tokens of a prompt that is `text`; raises Failure.

        With `special=False`, control tokens in it are read as plain text.
        """


class Candidates:
    """Finds token ids by asking the server, and remembers them where that is sound.

    A symbol is looked up in context, as what it adds to the tokenized prompt: on its own, many
    tokenizers would put a space before it or join it to what precedes.

    What a prompt ends with decides which token a symbol becomes. Where a control token, such as
    the one that ends the user's turn, stands in the prompt's fixed end, the tokenizer cuts the
    text there and what follows cannot depend on the state; the ids then hold for every prompt
    with that end. Where the template has none, they hold for every prompt with the same last
    token: byte pair encodings, ranked by merges or by scores, are exactly the sequences of which
    each two neighbours are an encoding. Learning the last token costs one request a prompt.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokens = tokenizer
        # By the prompt's fixed end, its last token and the symbols.
        self._ids: dict[tuple[str, int | None, tuple[str, ...]], tuple[int, ...]] = {}
        self._cut: dict[str, bool] = {}

    def ids(self, prompt: str, end: str, symbols: Iterable[str]) -> tuple[int, ...]:
        """One token id for each symbol, after a rendered prompt.

        `end` is the prompt's fixed end, which no state can change; empty where that is not known.
        Raises Failure: `candidate_not_one_token`, or the request for tokens failed.
        """
        symbols = tuple(symbols)
        tokens: list[int] | None = None
        if end not in self._cut:
            # Where a control token is in it, reading it as plain text gives other tokens.
            self._cut[end] = bool(end) and self._tokens(end) != self._tokens(end, special=False)
        if not self._cut[end]:
            tokens = self._tokens(prompt)
        key = (end, tokens[-1] if tokens else None, symbols)
        if key not in self._ids:
            tokens = self._tokens(prompt) if tokens is None else tokens
            self._ids[key] = self._look_up(prompt, tokens, symbols)
        return self._ids[key]

    def _look_up(self, prompt: str, tokens: list[int], symbols: tuple[str, ...]) -> tuple[int, ...]:
        ids = []
        for symbol in symbols:
            longer = self._tokens(prompt + symbol)
            if len(longer) != len(tokens) + 1 or longer[:-1] != tokens:
                raise _not_one_token(symbol=symbol, tokens_at_the_end=longer[-4:])
            ids.append(longer[-1])
        if len(set(ids)) != len(ids):
            raise _not_one_token(symbols=list(symbols), ids=ids)
        return tuple(ids)


def _not_one_token(**evidence: Any) -> Failure:
    return Failure("candidate_not_one_token", None, {"endpoint": "/tokenize", **evidence})
