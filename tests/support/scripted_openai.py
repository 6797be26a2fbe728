"""A local server that answers like vLLM, SGLang, llama.cpp or a plain OpenAI-compatible service.

All of them have the same model: its next-token distribution is the same after every prompt.
"""

import json
import math
import string
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from tests.support.scripted_llama import Answer, ScriptedLlama, scripted_llama, tokens

MODEL = "served"
_TEXTS = {
    tokens(text)[0]: text
    for text in ("yes", "no", *string.ascii_letters, *string.digits, "<", ">", "!", "?")
}
# Between -9 and 0, no two alike.
LOGITS = {token: -((index * 37) % 66) / 7 for index, token in enumerate(_TEXTS)}
YES, NO = tokens("yesno")


@dataclass(frozen=True)
class Flavour:
    """How a server answers.

    `tokenize` is the shape of its tokenizer's requests, `bias` what a bias changes, `names` what
    listed tokens are called by, `most` how many of them it lists before it refuses.
    """

    tokenize: Literal["llama", "vllm", "prompt only"] | None
    bias: Literal["probabilities", "sampling", "ignored"]
    names: Literal["id", "token_id", "text"]
    most: int = 1000


LLAMA = Flavour("llama", "sampling", "id")
VLLM = Flavour("vllm", "sampling", "token_id", most=20)
SGLANG = Flavour("prompt only", "probabilities", "text")
HOSTED = Flavour(None, "ignored", "text", most=20)


@contextmanager
def scripted_openai(flavour: Flavour) -> Iterator[ScriptedLlama]:
    """A running server of a flavour; `answers` replaces its behaviour by path."""
    with scripted_llama() as server:
        server.answers |= {
            "/v1/models": Answer({"object": "list", "data": [{"id": MODEL}]}),
            "/v1/chat/completions": lambda body: _complete(flavour, body, chat=True),
            "/v1/completions": lambda body: _complete(flavour, body, chat=False),
        }
        if flavour.tokenize != "llama":
            server.answers |= {
                "/apply-template": Answer({}, status=404),
                "/tokenize": lambda body: _tokenize(flavour, body),
                "/detokenize": lambda body: _detokenize(flavour, body),
            }
        yield server


def probabilities(labels: Mapping[str, str]) -> dict[str, float]:
    """The softmax over the tokens of some symbols, by label."""
    weights = {label: math.exp(LOGITS[tokens(text)[0]]) for label, text in labels.items()}
    total = math.fsum(weights.values())
    return {label: weight / total for label, weight in weights.items()}


def completion(content: Any, **changes: Any) -> dict[str, Any]:
    """A chat completion whose message has this content; `changes` are to the choice."""
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": "stop"} | changes
    return {
        "object": "chat.completion",
        "model": MODEL,
        "choices": [choice],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


def _complete(flavour: Flavour, body: Any, *, chat: bool) -> Answer:
    if "response_format" in body:
        schema = body["response_format"]["json_schema"]["schema"]
        labels = schema["properties"]["probabilities"]["required"]
        share = 1 / len(labels)
        return Answer(completion(json.dumps({"probabilities": dict.fromkeys(labels, share)})))
    top = body["top_logprobs"] if chat else body["logprobs"]
    if top > flavour.most:
        return Answer({"error": {"message": "too many"}}, status=400)
    bias = {int(token): value for token, value in body.get("logit_bias", {}).items()}
    after_bias = flavour.bias == "probabilities" or body.get("post_sampling_probs") is True
    plain, biased = _logprobs({}), _logprobs({} if flavour.bias == "ignored" else bias)
    sampled = max(biased, key=lambda token: biased[token])
    shown = biased if after_bias else plain
    order = sorted(shown, key=lambda token: -shown[token])[:top]
    legacy = not chat and flavour.tokenize != "llama"
    naming = flavour.names
    if naming == "token_id" and body.get("return_tokens_as_token_ids") is not True:
        naming = "text"
    post = body.get("post_sampling_probs") is True and flavour.tokenize == "llama"
    answer = completion("x", finish_reason="length")
    answer["choices"][0]["logprobs"] = (
        _legacy(naming, sampled, order, shown)
        if legacy
        else _modern(naming, sampled, order, shown, post=post)
    )
    return Answer(answer)


def _logprobs(bias: Mapping[int, float]) -> dict[int, float]:
    logits = {token: logit + bias.get(token, 0.0) for token, logit in LOGITS.items()}
    largest = max(logits.values())
    norm = largest + math.log(math.fsum(math.exp(z - largest) for z in logits.values()))
    return {token: logit - norm for token, logit in logits.items()}


def _name(naming: str, token: int) -> str:
    return f"token_id:{token}" if naming == "token_id" else _TEXTS[token]


def _modern(
    naming: str, sampled: int, order: list[int], shown: Mapping[int, float], *, post: bool
) -> dict[str, Any]:
    def entry(token: int) -> dict[str, Any]:
        value = {"prob": math.exp(shown[token])} if post else {"logprob": shown[token]}
        ids = {"id": token} if naming == "id" else {}
        return ids | {"token": _name(naming, token)} | value

    listed = [entry(token) for token in order]
    return {"content": [entry(sampled) | {"top_probs" if post else "top_logprobs": listed}]}


def _legacy(
    naming: str, sampled: int, order: list[int], shown: Mapping[int, float]
) -> dict[str, Any]:
    return {
        "tokens": [_name(naming, sampled)],
        "token_logprobs": [shown[sampled]],
        "top_logprobs": [{_name(naming, token): shown[token] for token in order}],
        "text_offset": [0],
    }


def _tokenize(flavour: Flavour, body: Any) -> Answer:
    if flavour.tokenize is None:
        return Answer({"detail": "Not Found"}, status=404)
    if "prompt" in body:
        found = tokens(body["prompt"])
    elif "messages" in body and flavour.tokenize == "vllm":
        found = tokens(_rendered(body["messages"]))
    else:
        return Answer({"detail": "prompt: field required"}, status=422)
    return Answer({"count": len(found), "max_model_len": 4096, "tokens": found})


def _detokenize(flavour: Flavour, body: Any) -> Answer:
    if flavour.tokenize != "vllm":
        return Answer({"detail": "Not Found"}, status=404)
    controls = {tokens(text)[0]: text for text in ("<|im_start|>", "<|im_end|>", "yes", "no")}
    text = "".join(controls.get(token) or chr(token) for token in body["tokens"])
    return Answer({"prompt": text})


def _rendered(messages: Any) -> str:
    turns = "".join(
        f"<|im_start|>{turn['role']}\n{turn['content']}<|im_end|>\n" for turn in messages
    )
    return f"{turns}<|im_start|>assistant\n"
