"""Generation of tokens: prompts, buckets, ends and sampling, on functions of Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ttcodegen.runtime.c_api import ModuleError
from ttcodegen.runtime.generation import Generation, Sampling

CONTENT = {
    "prefill": {"4": "prefill_4", "8": "prefill_8"},
    "decode": "decode",
    "batch": 2,
    "length": 16,
    "vocabulary": 10,
    "stop": [7],
    "pad": 0,
}


class Counting:
    """A model whose next token is the last one and 1."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def __call__(self, name: str) -> Any:
        def call(tokens: Any, padding: Any, position: Any = None) -> Any:
            self.calls.append((name, (tokens.copy(), padding.copy(), position)))
            return np.eye(10)[(tokens[:, -1] + 1) % 10]

        return call


def test_prompts_are_padded_on_the_left() -> None:
    model = Counting()
    found = Generation(CONTENT, model)([[1, 2, 3], [8]], 3, stop=[])
    np.testing.assert_array_equal(found, [[4, 5, 6], [9, 0, 1]])
    assert [name for name, _ in model.calls] == ["prefill_4", "decode", "decode"]
    tokens, padding, _ = model.calls[0][1]
    np.testing.assert_array_equal(tokens, [[0, 1, 2, 3], [0, 0, 0, 8]])
    np.testing.assert_array_equal(padding, [1, 3])
    assert [int(position[0]) for _, (_, _, position) in model.calls[1:]] == [4, 5]


@pytest.mark.parametrize("row", [[0, 0, 1, 2], [1, 2, 0, 0]])
def test_padding_of_an_array_may_be_on_either_side(row: list[int]) -> None:
    model = Counting()
    generation = Generation(CONTENT, model)
    tokens = np.array([row, [3, 3, 3, 3]])
    mask = np.array([[int(each > 0) for each in row], [1] * 4])
    np.testing.assert_array_equal(generation(tokens, 1, mask=mask), [[3], [4]])
    np.testing.assert_array_equal(model.calls[0][1][1], [2, 0])


def test_what_follows_an_end_is_padding() -> None:
    generation = Generation(CONTENT, Counting())
    np.testing.assert_array_equal(generation([[5], [2]], 6), [[6, 7, 0, 0, 0], [3, 4, 5, 6, 7]])
    # A single prompt ends alone, whatever the other sequence of the batch does.
    np.testing.assert_array_equal(generation([5], 6), [[6, 7]])


@pytest.mark.parametrize(
    ("tokens", "options", "message"),
    [
        ([[1] * 9], {}, r"a prompt of 9 tokens is too long: the project has buckets of 4, 8"),
        ([[1]], {"bucket": 5}, r"no bucket of 5 tokens, only of 4, 8"),
        ([[1] * 5], {"bucket": 4}, r"a prompt of 5 tokens is too long"),
        ([[1]], {"count": 14}, r"14 new tokens do not fit the cache of 16 positions"),
        ([[1]], {"count": 0}, r"1 new token at least, found 0"),
        ([[1], [1], [1]], {}, r"2 sequences at a time, found 3"),
        ([], {}, r"found 0 prompts"),
        ([[]], {}, r"one token at least"),
        ([[1.5]], {}, r"as integers"),
        ([[10]], {}, r"tokens are from 0 to 9"),
        ([[-1]], {}, r"tokens are from 0 to 9"),
        ([[1, 2]], {"mask": [[1, 1, 1]]}, r"the mask has another shape"),
        ([[1]], {"temperature": -1}, r"a temperature and top_k of 0 at least"),
        ([[1]], {"top_p": 0}, r"top_p above 0"),
    ],
)
def test_wrong_calls_are_refused(tokens: Any, options: dict[str, Any], message: str) -> None:
    model = Counting()
    count = options.pop("count", 1)
    with pytest.raises(ModuleError, match=message):
        Generation(CONTENT, model)(tokens, count, **options)
    assert not model.calls


def test_probabilities_of_drawn_tokens() -> None:
    random = np.random.default_rng(0)
    scores = np.log(np.array([[0.5, 0.3, 0.15, 0.05]] * 4000))

    def shares(**options: Any) -> np.ndarray:
        drawn = Sampling(**options).choose(scores, random)
        return np.bincount(drawn, minlength=4) / len(drawn)

    np.testing.assert_allclose(shares(temperature=1.0), [0.5, 0.3, 0.15, 0.05], atol=0.03)
    np.testing.assert_allclose(shares(temperature=1.0, top_k=2), [0.625, 0.375, 0, 0], atol=0.03)
    # 0.5 does not reach 0.7, 0.5 + 0.3 does.
    np.testing.assert_allclose(shares(temperature=1.0, top_p=0.7), [0.625, 0.375, 0, 0], atol=0.03)
    squares = np.array([0.25, 0.09, 0.0225, 0.0025])
    np.testing.assert_allclose(shares(temperature=0.5), squares / squares.sum(), atol=0.03)
    np.testing.assert_array_equal(shares(), [1, 0, 0, 0])
