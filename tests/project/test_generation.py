"""Generation of tokens: prompts, buckets, ends and sampling, on functions of Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ttcodegen.runtime.c_api import ModuleError
from ttcodegen.runtime.generation import Generation, Sampler

CONTENT = {
    "prefill": {"4": "prefill_4", "8": "prefill_8"},
    "decode": "decode",
    "greedy": "greedy",
    "sample": "sample",
    "batch": 2,
    "length": 16,
    "vocabulary": 10,
    "stop": [7],
    "pad": 0,
}


class Scores(np.ndarray):
    """An array in the place of a tensor on the device."""

    def numpy(self) -> np.ndarray:
        return np.asarray(self)


class Counting:
    """A model whose next token is the last one and 1."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.settings: list[Any] = []

    def __call__(self, name: str, *given: Any) -> Any:
        if name in ("greedy", "sample"):
            self.settings.append(given[1:])
            return np.asarray(given[0]).argmax(-1)[:, None].view(Scores)
        tokens, padding, *position = (np.array(each) for each in given)
        self.calls.append((name, (tokens, padding, *position)))
        return np.eye(10)[(tokens[:, -1] + 1) % 10].view(Scores)


def test_prompts_are_padded_on_the_left() -> None:
    model = Counting()
    found = Generation(CONTENT, model)([[1, 2, 3], [8]], 3, stop=[])
    np.testing.assert_array_equal(found, [[4, 5, 6], [9, 0, 1]])
    assert [name for name, _ in model.calls] == ["prefill_4", "decode", "decode"]
    tokens, padding = model.calls[0][1]
    np.testing.assert_array_equal(tokens, [[0, 1, 2, 3], [0, 0, 0, 8]])
    np.testing.assert_array_equal(padding, [1, 3])
    assert [int(position[0]) for _, (*_, position) in model.calls[1:]] == [4, 5]


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


def test_settings_of_drawn_tokens() -> None:
    model = Counting()
    Generation(CONTENT, model)([1], 2, temperature=0.5, top_p=0.25, seed=1, stop=[])
    first, second = model.settings
    for value, wanted in zip(first, ([0.5], [10], [0.25]), strict=False):
        np.testing.assert_array_equal(value, wanted)
    assert [each.dtype for each in first] == ["float32", "int32", "float32", "float32"]
    numbers = np.concatenate([first[3], second[3]])
    # The first numbers of SplitMix64 for the seed 1, as its authors' C gives them.
    bits = [0x910A2DEC89025CC1, 0xBEEB8DA1658EEC67, 0xF893A2EEFB32555E, 0x71C18690EE42C90B]
    np.testing.assert_array_equal(numbers, [(each >> 42) / 2**22 for each in bits])


def test_top_k_is_of_the_vocabulary_at_most() -> None:
    assert [int(Sampler(1.0, k, 1.0, 0).inputs(2, 10)[1][0]) for k in (0, 3, 11)] == [10, 3, 10]


def test_texts_end_before_a_stop_token(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    words = {word: token for token, word in enumerate("zero one two three four five six".split())}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="zero"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    generation = Generation(CONTENT, Counting())
    texts = ["one two", "three"]
    assert generation.generate_text(texts, 9, tokenizer=tmp_path) == [
        "three four five six",
        "four five six",
    ]
    file = tmp_path / "tokenizer.json"
    found = generation.generate_text("one", 9, tokenizer=file, stop=[4])
    assert found == ["two three"]
    file.write_text("{}")
    with pytest.raises(ModuleError, match="is no tokenizer"):
        generation.generate_text("one", 1, tokenizer=tmp_path)
    file.unlink()
    with pytest.raises(ModuleError, match="there is no tokenizer"):
        generation.generate_text("one", 1, tokenizer=tmp_path)
