"""Compiles decoders of transformers: prefill of several lengths, decode steps and sampling.

from ttcodegen.torch.generation import compile_decoder, load_decoder

compile_decoder(load_decoder("path/to/model"), out="out/", prefill=(32, 128), batch=2, check=True)
tokens = ttcodegen.load("out/").generate(prompt, 64)

Needs torch and transformers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Unpack, cast

from ttcodegen.dialects.ttcore.tile import TILE_SIDE, whole_tiles
from ttcodegen.emission.interface_description import default_module_name
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.framework import compile_to_project, framework
from ttcodegen.project.settings import Check, ProjectOptions, ProjectSettings
from ttcodegen.torch import functions_of, model_of
from ttcodegen.torch.pretrained import load_pretrained


def sampling_functions(batch: int, vocabulary: int, generator: Any) -> dict[str, Any]:
    """Sampling functions with examples.

    `greedy` selects the token of the highest score. `sample` samples from the `top_k` most likely
    tokens, limited to the fewest whose probabilities sum to `top_p`; it takes a random number in
    [0, 1) per sequence. Scores are float32 for all models.
    """
    torch = framework("torch")
    # Keep scores apart: the check compares tokens.
    order = [torch.randperm(vocabulary, generator=generator) for _ in range(batch)]
    scores = torch.stack(order) / 2
    greedy, sample = _classes()
    settings = (torch.tensor([1.0]), torch.tensor([4]), torch.tensor([0.75]))
    # Select the first and second of three candidates, far from the interval ends.
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


__all__ = ["compile_decoder", "load_decoder"]

NEW_TOKENS = 128
"""Default number of cache positions after the longest prompt."""
CHECKED_STEPS = 3
"""Number of decode steps in the check after the first one."""


def load_decoder(folder: str | os.PathLike[str], dtype: str = "") -> Any:
    """Loads a causal language model of transformers from its folder.

    Args:
        folder: a folder with config.json and *.safetensors, as `save_pretrained` writes it.
        dtype: f32 or bf16; that of the checkpoint if empty.

    Raises:
        CompileError: if there is no such model there, a file is damaged, or a weight is missing or
            has another shape.
    """
    return load_pretrained(folder, dtype, "AutoModelForCausalLM")


def compile_decoder(
    model: Any,
    *,
    out: str | os.PathLike[str],
    prefill: Sequence[int] = (32,),
    batch: int = 1,
    length: int | None = None,
    name: str | None = None,
    target: str = "ttnn",
    arch: str = "",
    system_desc: str | None = None,
    build: bool = False,
    check: Check = False,
    force: bool = False,
    seed: int | None = None,
    **settings: Unpack[ProjectSettings],
) -> Path:
    """Compiles a decoder to a project that generates tokens.

    The project has a function for each length of prompts, `prefill_32`, and `decode`, which takes
    one token of each sequence. All of them give the scores of the next token, and share weights
    and a cache of keys and values.

    Args:
        model: a causal language model of transformers.
        out: the project's folder.
        prefill: lengths of prompts; shorter ones are padded to the next.
        batch: the number of sequences.
        length: positions of the cache, prompt and new tokens together; if not given, those of the
            longest prompt and 128 more.
        name: name of the C++ module; by default that of the model's class.
        target: ttnn or ttmetal.
        arch: the card, wormhole_b0 if not given.
        system_desc: the system, as a .ttsys file or the name of a card.
        build: build the project.
        check: build it, run a random prompt and steps after it, and compare each with the model.
        force: write into an unrelated folder, or overwrite edits.
        seed: the seed of that prompt.
        settings: further options of the command line; see
            `ttcodegen.project.settings.ProjectSettings`.

    Returns:
        The project's folder; `ttcodegen.load(out).generate(tokens, count)` generates.

    Raises:
        CompileError: if the model is not supported, or a number is impossible.
        CheckError: if the check finds a difference.
    """
    torch = framework("torch")
    lengths = sorted(set(prefill))
    if not lengths or lengths[0] < 1 or batch < 1:
        raise CompileError("lengths of prompts and the batch are 1 at least")
    capacity = whole_tiles(length or lengths[-1] + NEW_TOKENS)
    _refuse_too_long(model, lengths[-1], capacity)
    steps = _steps(torch, model, batch, capacity)
    generator = torch.Generator().manual_seed(seed or 0)
    vocabulary = int(model.config.get_text_config(decoder=True).vocab_size)

    def drawn(count: int) -> Any:
        return torch.randint(0, vocabulary, (batch, count), generator=generator)

    padding = torch.arange(batch) % lengths[0]
    functions: dict[str, Any] = {
        f"prefill_{each}": (steps, (drawn(each), padding)) for each in lengths
    }
    functions["decode"] = (steps, (drawn(1), padding, torch.tensor([lengths[-1]])))
    functions |= sampling_functions(batch, vocabulary, generator)
    after = range(lengths[-1] + 1, min(capacity, lengths[-1] + 1 + CHECKED_STEPS))
    further = [("decode", (drawn(1), padding, torch.tensor([place]))) for place in after]
    taken = model_of(
        functions_of(functions, (), None), run=bool(check), steps=further if check else ()
    )
    generation = {
        "prefill": {str(each): f"prefill_{each}" for each in lengths},
        "decode": "decode",
        "greedy": "greedy",
        "sample": "sample",
        "batch": batch,
        "length": capacity,
        "vocabulary": vocabulary,
        **_special_tokens(model),
    }
    options = ProjectOptions(target, arch, system_desc, build, check, force, seed=seed, **settings)
    called = name or default_module_name(type(model).__name__.lower())
    return compile_to_project(replace(taken, generation=generation), Path(out), called, options)


def _refuse_too_long(model: Any, prompt: int, capacity: int) -> None:
    """Raises CompileError if a prompt exceeds the cache, or the cache the model's positions."""
    if prompt > capacity:
        raise CompileError(f"prompts of {prompt} tokens do not fit a cache of {capacity} positions")
    most = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None)
    if isinstance(most, int) and capacity > most:
        raise CompileError(
            f"a cache of {capacity} positions is too long: the model has {most}",
            remedy=f"give the length {most // TILE_SIDE * TILE_SIDE} at most, and shorter prompts",
        )


def _special_tokens(model: Any) -> dict[str, Any]:
    """Stop tokens, and the token that pads ended sequences."""
    config: Any = getattr(model, "generation_config", None) or model.config
    found: Any = getattr(config, "eos_token_id", None)
    ends = cast("list[Any]", found if isinstance(found, list) else [found])
    stop = [int(each) for each in ends if each is not None]
    pad: Any = getattr(config, "pad_token_id", None)
    return {"stop": stop, "pad": int(pad if pad is not None else stop[0] if stop else 0)}


def _steps(torch: Any, model: Any, batch: int, length: int) -> Any:
    """Module that appends tokens of all sequences to its cache."""
    cache_utils = framework("transformers.cache_utils")
    config = model.config.get_text_config(decoder=True)
    heads = int(getattr(config, "num_key_value_heads", None) or config.num_attention_heads)
    size = int(
        getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    )
    dtype = next(model.parameters()).dtype
    shape = (batch, heads, length, size)
    layers = [_layer_class()(max_cache_len=length) for _ in range(int(config.num_hidden_layers))]
    module = _module_class()(model, cache_utils.Cache(layers=layers), length)
    for index, layer in enumerate(layers):
        layer.is_initialized = True
        for part in ("keys", "values"):
            module.register_buffer(f"{part}_{index}", torch.zeros(shape, dtype=dtype))
    return module.eval()


@cache
def _layer_class() -> Any:
    """Cache layer that writes at the positions of the call."""
    static = framework("transformers.cache_utils").StaticLayer

    class Layer(static):
        places: Any = None
        start: Any = 0

        def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> Any:
            self.keys.index_copy_(2, self.places, key_states)
            self.values.index_copy_(2, self.places, value_states)
            return self.keys, self.values

        def get_seq_length(self) -> Any:
            return self.start

    return Layer


@cache
def _module_class() -> Any:
    """Decoder with its cache: tokens in, scores of the next token out."""
    torch = framework("torch")

    class Decoder(torch.nn.Module):
        def __init__(self, model: Any, kept: Any, length: int) -> None:
            torch.nn.Module.__init__(self)
            self.model = model
            self.kept = kept
            self.length = length

        def forward(self, tokens: Any, padding: Any, position: Any = None) -> Any:
            count = tokens.shape[1]
            places = torch.arange(count) if position is None else position
            for index, layer in enumerate(self.kept.layers):
                layer.keys = getattr(self, f"keys_{index}")
                layer.values = getattr(self, f"values_{index}")
                layer.places = places
                layer.start = 0 if position is None else position[0]
            # Padding is on the left, so that all sequences go on at one position.
            visible = torch.arange(self.length)[None] >= padding[:, None]
            found = self.model(
                input_ids=tokens,
                attention_mask=visible,
                position_ids=(places[None] - padding[:, None]).clamp(min=0),
                past_key_values=self.kept,
                use_cache=True,
                logits_to_keep=1,
            )
            return found.logits[:, -1]

    return Decoder
