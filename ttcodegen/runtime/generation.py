"""Generation of tokens by the functions of a loaded project."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ttcodegen.project.manifest import MANIFEST
from ttcodegen.runtime.c_api import ModuleError


@dataclass(frozen=True)
class Sampling:
    """Choice of the next token.

    With a temperature of 0 it is the one of the highest score; else one is drawn of the `top_k`
    most likely ones (0 for all), of the fewest whose probabilities sum to `top_p`.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if self.temperature < 0 or self.top_k < 0 or not 0 < self.top_p <= 1:
            raise ModuleError(
                "expected a temperature and top_k of 0 at least, and top_p above 0 and up to 1"
            )

    def choose(self, scores: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """The next token of each row of scores."""
        if self.temperature == 0:
            return scores.argmax(-1)
        return np.array([self._drawn(row.astype(np.float64), random) for row in scores])

    def _drawn(self, scores: np.ndarray, random: np.random.Generator) -> int:
        order = np.argsort(-scores, kind="stable")
        if self.top_k:
            order = order[: self.top_k]
        weights = np.exp((scores[order] - scores[order[0]]) / self.temperature)
        probabilities = weights / weights.sum()
        # The token that reaches the sum is among them.
        count = int(np.searchsorted(probabilities.cumsum(), self.top_p)) + 1
        kept = probabilities[:count] / probabilities[:count].sum()
        return int(order[random.choice(len(kept), p=kept)])


class Generation:
    """Prompts and steps of a decoder, on the cache that the module keeps.

    Args:
        content: what the manifest says of them.
        functions: gives a function of the module by its name.
    """

    def __init__(
        self, content: Mapping[str, Any], functions: Callable[[str], Callable[..., Any]]
    ) -> None:
        try:
            self.buckets = {int(k): str(v) for k, v in content["prefill"].items()}
            """Functions by the lengths of prompts."""
            self.batch = int(content["batch"])
            self.length = int(content["length"])
            self.vocabulary = int(content["vocabulary"])
            self._decode = str(content["decode"])
            self._stop = [int(each) for each in content["stop"]]
            self._pad = int(content["pad"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ModuleError(f"{MANIFEST} is damaged: compile the model again") from None
        self._functions = functions

    def __call__(
        self,
        tokens: ArrayLike | Sequence[Sequence[int]],
        count: int,
        *,
        mask: ArrayLike | None = None,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        stop: Sequence[int] | None = None,
        bucket: int | None = None,
    ) -> np.ndarray:
        """Generates tokens after prompts.

        Args:
            tokens: a prompt, or several: a row for each, of any lengths.
            count: the number of new tokens.
            mask: 0 for the tokens of an array that are padding, on either side.
            temperature: 0 takes the token of the highest score; others draw.
            top_k: draw among so many of the most likely tokens; 0 for all.
            top_p: draw among the fewest tokens whose probabilities sum to this.
            seed: the seed of what is drawn.
            stop: tokens that end a sequence; those of the model if not given.
            bucket: the length that prompts are padded to; the shortest that fits if not given.

        Returns:
            The new tokens, a row for each prompt; fewer than `count` if all ended before. What
            follows the end of a sequence is padding.

        Raises:
            ModuleError: if prompts and new tokens do not fit, or a token is none of the model.
        """
        sampling, random = Sampling(temperature, top_k, top_p), np.random.default_rng(seed)
        prompts = self._prompts(tokens, mask)
        size = self._bucket(max(map(len, prompts)), count, bucket)
        # Sequences that nobody wants are copies of the first.
        rows = [*prompts, *[prompts[0]] * (self.batch - len(prompts))]
        padding = np.array([size - len(row) for row in rows])
        padded = np.stack([np.pad(row, (size - len(row), 0)) for row in rows])
        ends = np.array(self._stop if stop is None else stop, np.int64)
        ended = np.zeros(self.batch, bool)
        ended[len(prompts) :] = True
        scores = self._functions(self.buckets[size])(padded, padding)
        found: list[np.ndarray] = []
        while True:
            chosen = np.where(
                ended, self._pad, sampling.choose(np.asarray(scores, np.float32), random)
            )
            found.append(chosen)
            ended |= np.isin(chosen, ends)
            if len(found) == count or ended.all():
                return np.stack(found, 1)[: len(prompts)]
            position = np.array([size + len(found) - 1])
            scores = self._functions(self._decode)(chosen[:, None], padding, position)

    def _prompts(self, tokens: Any, mask: ArrayLike | None) -> list[np.ndarray]:
        rows: list[Any] = list(tokens)
        if rows and np.ndim(rows[0]) == 0:
            rows = [rows]
        if not 1 <= len(rows) <= self.batch:
            raise ModuleError(
                f"the project generates {self.batch} sequences at a time, found {len(rows)} prompts"
            )
        prompts = [np.asarray(row) for row in rows]
        if mask is not None:
            masks = cast("list[np.ndarray]", list(np.atleast_2d(np.asarray(mask, bool))))
            if [each.shape for each in masks] != [each.shape for each in prompts]:
                raise ModuleError("the mask has another shape than the tokens")
            prompts = [row[kept] for row, kept in zip(prompts, masks, strict=True)]
        for row in prompts:
            if row.ndim != 1 or row.dtype.kind not in "iu" or not len(row):
                raise ModuleError("a prompt is a row of one token at least, as integers")
            if row.min() < 0 or row.max() >= self.vocabulary:
                raise ModuleError(f"tokens are from 0 to {self.vocabulary - 1}")
        return prompts

    def _bucket(self, longest: int, count: int, wanted: int | None) -> int:
        known = ", ".join(map(str, sorted(self.buckets)))
        if count < 1:
            raise ModuleError(f"expected 1 new token at least, found {count}")
        if wanted is not None and wanted not in self.buckets:
            raise ModuleError(f"there is no bucket of {wanted} tokens, only of {known}")
        fitting = [each for each in sorted(self.buckets) if longest <= each in (wanted or each,)]
        if not fitting:
            raise ModuleError(
                f"a prompt of {longest} tokens is too long: the project has buckets of {known}"
            )
        if fitting[0] + count - 1 > self.length:
            raise ModuleError(
                f"a prompt in a bucket of {fitting[0]} and {count} new tokens do not fit the "
                f"cache of {self.length} positions"
            )
        return fitting[0]
