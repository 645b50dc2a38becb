"""Decoders of transformers from their folders: refusals, and the tokens they give."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
torch_files = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")

import ttcodegen  # noqa: E402
from ttcodegen.torch.__main__ import main  # noqa: E402
from ttcodegen.torch.generation import sampling_functions  # noqa: E402

DOCUMENT = Path(__file__).parents[2] / "docs" / "language-models.md"

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]


def decoder() -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        vocab_size=96,
        max_position_embeddings=64,
        bos_token_id=None,
        eos_token_id=None,
    )
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("decoder")
    decoder().save_pretrained(place)
    return place


def damaged(folder: Path, place: Path, kind: str) -> Path:
    """A copy of a model whose file of weights is wrong."""
    place.mkdir()
    if kind == "empty":
        return place
    place.joinpath("config.json").write_text(folder.joinpath("config.json").read_text())
    if kind == "no weights":
        return place
    weights = torch_files.load_file(folder / "model.safetensors")
    file = place / "model.safetensors"
    if kind == "missing":
        del weights["model.layers.0.mlp.up_proj.weight"]
    if kind == "shape":
        weights["model.norm.weight"] = torch.ones(65)
    torch_files.save_file(weights, file, {"format": "pt"})
    if kind == "truncated":
        file.write_bytes(file.read_bytes()[:-1000])
    return place


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("empty", "holds no config.json"),
        ("no weights", "holds no weights"),
        ("missing", "lacks the weight 'model.layers.0.mlp.up_proj.weight'"),
        ("shape", "the weight 'model.norm.weight' of the checkpoint in"),
        ("truncated", "cannot be loaded: "),
    ],
)
def test_a_damaged_checkpoint_is_refused(
    kind: str, message: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = damaged(folder, tmp_path / "model", kind), tmp_path / "out"
    assert main([str(model), "--out", str(out)]) == 1
    said = capsys.readouterr().err.strip().splitlines()
    assert message in said[0]
    assert len([line for line in said if "error:" in line]) == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--prefill", "48", "--length", "32"], "do not fit a cache of 32 positions"),
        (["--length", "96"], "a cache of 96 positions is too long: the model has 64"),
        (["--batch", "0", "--length", "64"], "1 at least"),
        (["--dtype", "f8"], "there is no type 'f8'"),
    ],
)
def test_impossible_numbers_are_refused(
    options: list[str],
    message: str,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([str(folder), "--out", str(tmp_path / "out"), *options]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_scores_have_the_type_of_the_model(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--prefill", "8", "--length", "32", "--dtype", "bf16"]
    assert main([str(folder), "--out", str(out), *options]) == 0
    rows = json.loads((out / "manifest.json").read_text())["functions"]
    assert [row["outputs"][0]["source_dtype"] for row in rows[:2]] == ["bfloat16", "bfloat16"]
    assert [row["name"] for row in rows[2:]] == ["greedy", "sample"]


def test_probabilities_of_drawn_tokens() -> None:
    """Shares of tokens for numbers that are distributed evenly."""
    numbers = (torch.arange(4000) + 0.5) / 4000
    likely = torch.tensor([0.15, 0.5, 0.05, 0.3])
    functions = sampling_functions(4000, 4, torch.Generator())

    def shares(temperature: float, top_k: int, top_p: float) -> Any:
        settings = torch.tensor([temperature]), torch.tensor([top_k]), torch.tensor([top_p])
        sample, _ = functions["sample"]
        drawn = sample(likely.log().expand(4000, 4), *settings, numbers)
        return np.bincount(drawn[:, 0].numpy(), minlength=4) / 4000

    np.testing.assert_allclose(shares(1.0, 4, 1.0), likely, atol=0.001)
    np.testing.assert_allclose(shares(1.0, 2, 1.0), [0, 0.625, 0, 0.375], atol=0.001)
    # 0.5 does not reach 0.7, 0.5 + 0.3 does.
    np.testing.assert_allclose(shares(1.0, 4, 0.7), [0, 0.625, 0, 0.375], atol=0.001)
    # Shares of top_p are of the tokens that top_k has left: 0.625 reaches 0.6.
    np.testing.assert_allclose(shares(1.0, 2, 0.6), [0, 1, 0, 0], atol=0.001)
    squares = likely.numpy() ** 2
    np.testing.assert_allclose(shares(0.5, 4, 1.0), squares / squares.sum(), atol=0.001)


@pytest.mark.slow
def test_the_document_can_be_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    monkeypatch.chdir(tmp_path)
    text = DOCUMENT.read_text()
    pattern = r'^```python(?: title="slow")?\n(.*?)^```$|^    python -m ttcodegen.torch ([^\n]*)$'
    steps = re.findall(pattern, text, re.MULTILINE | re.DOTALL)
    assert [bool(command) for _, command in steps] == [False, True, False, False]
    names: dict[str, Any] = {}
    for script, command in steps:
        if command:
            assert main(shlex.split(command)) == 0
        else:
            exec(compile(script, str(DOCUMENT), "exec"), names)
    assert names["tokens"].shape == (2, 32)
    prompts, tokens = names["prompts"], names["tokens"]
    with ttcodegen.load("out") as loaded:
        np.testing.assert_array_equal(loaded.generate(prompts[1], 8), tokens[1:, :8])
        drawn = [loaded.generate(prompts, 8, temperature=2.0, top_k=40, seed=i) for i in (1, 1, 2)]
        with pytest.raises(ttcodegen.ModuleError, match="a prompt of 17 tokens is too long"):
            loaded.generate([[1] * 17], 1)
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()
    words = {str(number): number for number in range(256)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="0"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save("llama/tokenizer.json")
    command = next(command for _, command in steps if command)
    asked = ["--text", "5 17 200 3 9", "--text", "44 1 2", "--generate", "4"]
    assert main([*shlex.split(command), *asked]) == 0
    said = capsys.readouterr().out.splitlines()[-2:]
    assert said == [" ".join(map(str, row[:4])) for row in tokens]
