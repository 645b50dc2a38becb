"""Choice of the next token from scores, as functions of a project."""

from __future__ import annotations

from functools import cache
from typing import Any

from ttcodegen.framework import framework


def sampling_functions(batch: int, vocabulary: int, generator: Any) -> dict[str, Any]:
    """Functions that choose a token for each sequence, with examples.

    `greedy` takes the one of the highest score. `sample` draws one of the `top_k` most likely ones,
    of the fewest whose probabilities sum to `top_p`; it takes a random number in [0, 1) for each
    sequence. Scores are in float32, which holds those of all models.
    """
    torch = framework("torch")
    # No two scores of a sequence are near each other: the check compares tokens.
    order = [torch.randperm(vocabulary, generator=generator) for _ in range(batch)]
    scores = torch.stack(order) / 2
    greedy, sample = _classes()
    settings = (torch.tensor([1.0]), torch.tensor([4]), torch.tensor([0.75]))
    # The first and the second of the three that may be drawn, far from where others begin.
    numbers = 0.25 + 0.35 * (torch.arange(batch) % 2)
    return {
        "greedy": (greedy(), (scores,)),
        "sample": (sample(), (scores, *settings, numbers)),
    }


@cache
def _classes() -> tuple[Any, Any]:
    torch = framework("torch")

    class Greedy(torch.nn.Module):
        def forward(self, scores: Any) -> Any:
            return scores.argmax(-1, keepdim=True)

    class Sample(torch.nn.Module):
        def forward(
            self, scores: Any, temperature: Any, top_k: Any, top_p: Any, number: Any
        ) -> Any:
            ordered, tokens = torch.sort(scores / temperature, -1, descending=True)
            weights = torch.exp(ordered - ordered[:, :1])
            weights = torch.where(torch.arange(weights.shape[1])[None] < top_k, weights, 0.0)
            # The token that reaches the sum is among those that may be drawn.
            before = weights.cumsum(-1) - weights
            likely = before < top_p * weights.sum(-1, keepdim=True)
            reached = torch.where(likely, weights, 0.0).cumsum(-1)
            place = (reached <= number[:, None] * reached[:, -1:]).sum(-1, keepdim=True)
            return torch.gather(tokens, 1, place)

    return Greedy, Sample
