"""Token generation by the functions of a loaded project."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from ttcodegen.project.manifest import MANIFEST
from ttcodegen.runtime.c_api import DeviceTensor, ModuleError

_WRAP = 1 << 64
"""Modulus of 64-bit integers."""


class RunFunction(Protocol):
    """Runs a function of a module on its state."""

    def __call__(self, name: str, *given: Any) -> DeviceTensor:
        """Runs a function on arrays and device tensors; its output stays on the device."""
        ...


class Sampler:
    """Sampler of the next tokens, on the device.

    A temperature of 0 is greedy; else it samples from the `top_k` most likely tokens (0 for all),
    limited to the fewest whose probabilities sum to `top_p`.
    """

    def __init__(self, temperature: float, top_k: int, top_p: float, seed: int) -> None:
        if not temperature >= 0 or top_k < 0 or not 0 < top_p <= 1:
            raise ModuleError(
                "expected a temperature and top_k of 0 at least, and top_p above 0 and up to 1"
            )
        self.is_greedy = temperature == 0
        self._settings = temperature, top_k, top_p
        self._state = seed % _WRAP

    def inputs(self, batch: int, vocabulary: int) -> tuple[np.ndarray, ...]:
        """Inputs of `sample` after the scores, as `Sampler` in src/generate.cpp computes them."""
        temperature, top_k, top_p = self._settings
        return (
            np.array([temperature], np.float32),
            # 0 means the whole vocabulary.
            np.array([min(top_k or vocabulary, vocabulary)], np.int32),
            np.array([top_p], np.float32),
            np.array([self._number() for _ in range(batch)], np.float32),
        )

    def _number(self) -> float:
        """Random number in [0, 1) by SplitMix64, as in support/drawing.hpp.

        It has 22 bits, so that its product with a sum of probabilities stays below that sum in
        float32.
        """
        self._state = (self._state + 0x9E3779B97F4A7C15) % _WRAP
        value = self._state
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % _WRAP
        value = (value ^ value >> 27) * 0x94D049BB133111EB % _WRAP
        return ((value ^ value >> 31) >> 42) / (1 << 22)


class Generation:
    """Prefill and decode of a model on the module's KV cache.

    Args:
        content: the manifest's entry.
        run: runs a function of the module.
    """

    def __init__(self, content: Mapping[str, Any], run: RunFunction) -> None:
        try:
            self.buckets = {int(k): str(v) for k, v in content["prefill"].items()}
            """Prefill functions by prompt length."""
            self.batch = int(content["batch"])
            self.length = int(content["length"])
            self.vocabulary = int(content["vocabulary"])
            self._decode = str(content["decode"])
            self._greedy = str(content["greedy"])
            self._sample = str(content["sample"])
            self._stop = [int(each) for each in content["stop"]]
            self._pad = int(content["pad"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ModuleError(f"{MANIFEST} is damaged: compile the model again") from None
        self._run = run

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
            tokens: a prompt, or several of any lengths, one per row.
            count: the number of new tokens.
            mask: 0 for padding tokens of an array, on either side.
            temperature: 0 selects the token of the highest score; others sample.
            top_k: number of the most likely tokens to sample from; 0 for all.
            top_p: samples from the fewest tokens whose probabilities sum to this.
            seed: seed of the samples.
            stop: tokens that end a sequence; by default the model's.
            bucket: the length that prompts are padded to; by default the shortest that fits.

        Returns:
            The new tokens, one row per prompt; fewer than `count` if all sequences ended. Tokens
            after the end of a sequence are padding.

        Raises:
            ModuleError: if prompts and new tokens do not fit, or a token is not in the vocabulary.
        """
        sampler = Sampler(temperature, top_k, top_p, seed)
        prompts = self._prompts(tokens, mask)
        size = self._bucket(max(map(len, prompts)), count, bucket)
        # Fill the batch with copies of the first prompt.
        rows = [*prompts, *[prompts[0]] * (self.batch - len(prompts))]
        padding = np.array([size - len(row) for row in rows])
        padded = np.stack([np.pad(row, (size - len(row), 0)) for row in rows])
        ends = np.array(self._stop if stop is None else stop, np.int64)
        ended = np.zeros(self.batch, bool)
        ended[len(prompts) :] = True
        scores = self._run(self.buckets[size], padded, padding)
        found: list[np.ndarray] = []
        while True:
            chosen = self._chosen(scores, sampler)
            # Padding is only returned: the device continues with the sampled tokens.
            found.append(np.where(ended, self._pad, chosen.numpy()[:, 0].astype(np.int64)))
            ended |= np.isin(found[-1], ends)
            if len(found) == count or ended.all():
                return np.stack(found, 1)[: len(prompts)]
            position = np.array([size + len(found) - 1])
            scores = self._run(self._decode, chosen, padding, position)

    def generate_text(
        self,
        texts: str | Sequence[str],
        count: int,
        *,
        tokenizer: str | os.PathLike[str],
        stop: Sequence[int] | None = None,
        **options: Any,
    ) -> list[str]:
        """Generates text after prompts; requires the package tokenizers.

        Args:
            texts: a prompt, or several.
            count: the number of new tokens.
            tokenizer: tokenizer.json, or the model's folder with it.
            stop: tokens that end a text; by default the model's.
            options: other options of a call.

        Returns:
            The continuation of each prompt, up to its end.

        Raises:
            ModuleError: if there is no tokenizer, or a prompt does not fit.
        """
        ends = self._stop if stop is None else list(stop)
        coder = _tokenizer(Path(tokenizer))
        prompts = [texts] if isinstance(texts, str) else texts
        rows = self([coder.encode(each).ids for each in prompts], count, stop=ends, **options)
        return [coder.decode(_truncate_at_end(row, ends)) for row in rows.tolist()]

    def _chosen(self, scores: DeviceTensor, sampler: Sampler) -> DeviceTensor:
        """Next token of each sequence."""
        if sampler.is_greedy:
            return self._run(self._greedy, scores)
        return self._run(self._sample, scores, *sampler.inputs(self.batch, self.vocabulary))

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


def _tokenizer(place: Path) -> Any:
    """Loads a tokenizer from a file or a model's folder."""
    try:
        tokenizers: Any = importlib.import_module("tokenizers")
    except ImportError:
        raise ModuleError("text needs the package tokenizers: pip install tokenizers") from None
    file = place / "tokenizer.json" if place.is_dir() else place
    if not file.is_file():
        raise ModuleError(f"there is no tokenizer '{file}'")
    try:
        return tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:  # The package raises nothing more specific.
        raise ModuleError(f"'{file}' is no tokenizer: {str(error).splitlines()[0]}") from None


def _truncate_at_end(row: list[int], ends: Sequence[int]) -> list[int]:
    """Tokens before the first one that ends the sequence."""
    return row[: next((i for i, token in enumerate(row) if token in ends), len(row))]
