"""Tokens that the executable of a decoder generates, against `generate` of transformers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import ttcodegen  # noqa: E402
from ttcodegen.torch.generation import compile_decoder  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.frameworks,
    pytest.mark.filterwarnings("ignore"),
]

STEPS = 32
PROMPTS = [[5, 17, 200, 3, 9, 77], [44, 1, 2]]
SIZES = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 64,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}


def llama() -> Any:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES))


def qwen3() -> Any:
    """A layer with all keys and one with a window of 16."""
    windows = {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1}
    config = transformers.Qwen3Config(**SIZES, **windows, head_dim=32)
    return transformers.Qwen3ForCausalLM(config)


@dataclass(frozen=True)
class Project:
    """A built project, and the model that it was made of."""

    model: Any
    folder: Path

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs the executable."""
        command = [str(self.folder / "build" / "decoder_main"), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any, str], Project]:
    """Builds the project of a model, once for each type."""

    @cache
    def built(made: Any, dtype: str) -> Project:
        torch.manual_seed(1)
        model = made().eval().to(getattr(torch, dtype))
        out = tmp_path_factory.mktemp("project") / "out"
        compile_decoder(
            model, out=out, prefill=(4, 8), batch=2, length=64, name="decoder", build=True
        )
        return Project(model, out)

    return built


@pytest.fixture(
    params=[(llama, "float32"), (llama, "bfloat16"), (qwen3, "float32"), (qwen3, "bfloat16")],
    ids=lambda param: f"{param[0].__name__}-{param[1]}",
)
def project(request: pytest.FixtureRequest, build: Callable[[Any, str], Project]) -> Project:
    return build(*request.param)


@pytest.fixture
def llama_project(build: Callable[[Any, str], Project]) -> Project:
    return build(llama, "float32")


def saved(folder: Path, *prompts: Any) -> list[str | Path]:
    """Options with a file for each prompt."""
    options: list[str | Path] = []
    for index, prompt in enumerate(prompts):
        file = folder / f"prompt{index}.npy"
        np.save(file, np.asarray(prompt))
        options += ["--tokens", file]
    return options


def padded(rows: list[list[int]]) -> tuple[Any, Any]:
    """Tokens with padding on the left, and their mask."""
    longest = max(map(len, rows))
    tokens = [[0] * (longest - len(row)) + row for row in rows]
    mask = [[0] * (longest - len(row)) + [1] * len(row) for row in rows]
    return torch.tensor(tokens), torch.tensor(mask)


def scores_of(model: Any, tokens: np.ndarray) -> np.ndarray:
    """Scores of transformers at each of the generated tokens, after those before it."""
    given, mask = padded(PROMPTS)
    whole = torch.cat([given, torch.from_numpy(tokens.astype(np.int64))], 1)
    mask = torch.cat([mask, torch.ones(tokens.shape, dtype=mask.dtype)], 1)
    places = (mask.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        found = model(input_ids=whole, attention_mask=mask, position_ids=places)
    return found.logits[:, given.shape[1] - 1 : -1].float().numpy()


def test_tokens_of_the_highest_score(project: Project, tmp_path: Path) -> None:
    done = project.run(
        *saved(tmp_path, *PROMPTS), "--generate", "32", "--output", tmp_path / "tokens.npy"
    )
    assert done.returncode == 0, done.stderr
    tokens = np.load(tmp_path / "tokens.npy")
    assert [[int(each) for each in line.split()] for line in done.stdout.splitlines()] == (
        tokens.tolist()
    )
    given, mask = padded(PROMPTS)
    expected = project.model.generate(
        given, attention_mask=mask, max_new_tokens=STEPS, do_sample=False, pad_token_id=0
    )[:, given.shape[1] :].numpy()
    assert tokens.shape == expected.shape
    if project.model.dtype == torch.float32:
        np.testing.assert_array_equal(tokens, expected)
        return
    # In bfloat16 the two highest scores may be closer than its rounding: either may be taken, and
    # what follows is compared after the same tokens.
    scores = scores_of(project.model, tokens)
    chosen = np.take_along_axis(scores, tokens[..., None].astype(np.int64), -1)[..., 0]
    gaps = scores.max(-1) - chosen
    ties = [(row, step, float(gaps[row, step])) for row, step in np.argwhere(gaps > 0)]
    assert all(gap <= 2**-6 * np.abs(scores).max() for *_, gap in ties), ties
    assert len(ties) <= 4, ties


def test_python_and_the_executable_draw_the_same(project: Project, tmp_path: Path) -> None:
    settings = {"temperature": 2.0, "top_k": 40, "top_p": 0.9}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    with ttcodegen.load(project.folder) as loaded:
        drawn = [loaded.generate(PROMPTS, 8, seed=seed, **settings) for seed in (1, 2)]
        greedy = loaded.generate(PROMPTS, STEPS)
    assert (drawn[0] != drawn[1]).any()
    for seed, expected in ((1, drawn[0]), (2, drawn[1]), (0, greedy)):
        given = ["--seed", str(seed), *options] if seed else []
        count = str(expected.shape[1])
        done = project.run(*saved(tmp_path, *PROMPTS), "--generate", count, *given)
        assert [line.split() for line in done.stdout.splitlines()] == expected.astype(str).tolist()


def test_a_sequence_ends_with_a_stop_token(llama_project: Project, tmp_path: Path) -> None:
    options = [*saved(tmp_path, [PROMPTS[0][:3], PROMPTS[1]]), "--generate", "6"]
    rows = [line.split() for line in llama_project.run(*options).stdout.splitlines()]
    done = llama_project.run(*options, "--stop", f"{rows[0][1]},255")
    stopped = [line.split() for line in done.stdout.splitlines()]
    assert stopped[0] == [*rows[0][:2], "0", "0", "0", "0"]
    assert stopped[1] == rows[1]
    # A prompt alone ends the run.
    done = llama_project.run(*saved(tmp_path, PROMPTS[0][:3]), "--generate", "6", "--stop", "255")
    assert done.stdout.split() == rows[0]
    done = llama_project.run(
        *saved(tmp_path, PROMPTS[0][:3]), "--generate", "6", "--stop", rows[0][1]
    )
    assert done.stdout.split() == rows[0][:2]


@pytest.mark.parametrize("rows", [[[5, 17, 200], [0, 44, 1]], [[5, 17, 200], [44, 1, 0]]])
def test_a_mask_says_which_tokens_are_padding(
    llama_project: Project, tmp_path: Path, rows: list[list[int]]
) -> None:
    expected = llama_project.run(*saved(tmp_path, [5, 17, 200], [44, 1]), "--generate=4").stdout
    np.save(tmp_path / "mask.npy", np.array(rows) > 0)
    options = [*saved(tmp_path, rows), "--generate=4", "--mask", tmp_path / "mask.npy"]
    assert llama_project.run(*options).stdout == expected != ""
    np.save(tmp_path / "mask.npy", np.ones((2, 2)))
    done = llama_project.run(*options)
    assert (done.returncode, done.stdout) == (1, "")
    assert "expected the shape (2, 3) of the tokens, found (2, 2)" in done.stderr
    done = llama_project.run(*saved(tmp_path, *rows), *options[2:])
    assert "--mask is of one file of prompts, found 2" in done.stderr


@pytest.mark.parametrize(
    ("prompts", "options", "message"),
    [
        ([[1] * 9], [], "a prompt of 9 tokens is too long: the project has buckets of 4, 8"),
        ([[1]], ["--generate=62"], "4 and 62 new tokens do not fit the cache of 64 positions"),
        ([[1]], ["--generate=0"], "expected 1 new token at least, found 0"),
        ([[1], [1], [1]], [], "2 sequences at a time, found 3 prompts"),
        ([[[1]] * 3], [], "2 sequences at a time, found 3 prompts"),
        ([[1.5]], [], "prompt0.npy: tokens are integers, found float64"),
        ([[True]], [], "prompt0.npy: tokens are integers, found bool"),
        ([[[[1]]]], [], "prompt0.npy: expected a prompt, or a row for each, found the shape"),
        ([1], [], "prompt0.npy: expected a prompt, or a row for each, found the shape ()"),
        ([np.zeros(0, np.int32)], [], "prompt0.npy: a prompt has one token at least"),
        ([np.zeros((2, 0), np.int32)], [], "prompt0.npy: a prompt has one token at least"),
        ([[256]], [], "prompt0.npy: tokens are from 0 to 255"),
        ([[-1]], [], "prompt0.npy: tokens are from 0 to 255"),
        ([], ["--tokens=missing.npy"], "missing.npy: No such file or directory"),
        ([[1]], ["--output=missing/tokens.npy"], "missing/tokens.npy: No such file or directory"),
        ([[1]], ["--temperature=-1"], "a temperature of 0 at least"),
        ([[1]], ["--temperature=nan"], "a temperature of 0 at least"),
        ([[1]], ["--top-p=0"], "--top-p above 0"),
    ],
)
def test_what_does_not_fit_is_refused(
    llama_project: Project, tmp_path: Path, prompts: Any, options: list[str], message: str
) -> None:
    done = llama_project.run("--generate=3", *saved(tmp_path, *prompts), *options)
    assert done.returncode == 1
    assert re.fullmatch(r"error: [^\n]*\n", done.stderr), done.stderr
    assert message in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--generate=3"], "--generate needs prompts: give --tokens FILE"),
        (["--generate=3", "--function=decode"], "'--function' is no option of the generation"),
        (["--generate=x"], "--generate needs a number, found 'x'"),
        (["--generate=3", "--stop=1,"], "--stop needs a number, found ''"),
        (["--tokens"], "'--tokens' is no option, or lacks its value"),
    ],
)
def test_wrong_options_are_refused(
    llama_project: Project, options: list[str], message: str
) -> None:
    done = llama_project.run(*options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_help_lists_the_options(llama_project: Project) -> None:
    done = llama_project.run("--help")
    assert "--generate N        number of new tokens" in done.stdout
