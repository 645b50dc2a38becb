"""`python -m ttcodegen.torch`: compiles a text model from its folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.framework import CheckError
from ttcodegen.runtime.c_api import ModuleError
from ttcodegen.runtime.library import load

FAILED, MISMATCH = 1, 4
"""Exit statuses, as of `ttcodegen`."""


def _lengths(text: str) -> list[int]:
    try:
        return [int(each) for each in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no list of numbers: 32,128") from None


def parser() -> argparse.ArgumentParser:
    """Parser of the command line."""
    made = argparse.ArgumentParser("python -m ttcodegen.torch", description=__doc__)
    made.add_argument("folder", help="a folder with config.json and *.safetensors")
    made.add_argument("--out", "-o", required=True, help="the folder of the project")
    made.add_argument(
        "--prefill", type=_lengths, metavar="N,N", help="lengths of prompts of a decoder (32)"
    )
    made.add_argument(
        "--lengths",
        type=_lengths,
        metavar="N,N",
        help="lengths of texts, of a model that does not generate",
    )
    made.add_argument(
        "--decode", action="store_true", help="accepted: every decoder has steps of one token"
    )
    made.add_argument("--batch", type=int, default=1, help="number of sequences")
    made.add_argument("--length", type=int, help="positions of the cache, prompt and new tokens")
    made.add_argument(
        "--dtype", default="", help="f32 or bf16; that of the checkpoint if not given"
    )
    made.add_argument("--name", help="what the C++ module is called")
    made.add_argument("--target", default="ttnn", choices=("ttnn", "ttmetal"))
    made.add_argument("--arch", default="", help="the card")
    made.add_argument("--optimize", type=int, choices=(0, 1, 2))
    made.add_argument(
        "--weights",
        default="",
        choices=("bfp8_b", "bfp4_b"),
        help="types of the weights of matmuls",
    )
    made.add_argument(
        "--activations",
        default="",
        choices=("bfp8_b",),
        help="types of activations between calls that take them",
    )
    made.add_argument("--build", action="store_true", help="build the project")
    made.add_argument("--check", action="store_true", help="build it and compare with the model")
    made.add_argument("--force", action="store_true", help="write into a folder of others")
    made.add_argument("--seed", type=int, help="of the prompt of the check (0)")
    made.add_argument(
        "--text",
        action="append",
        default=[],
        help="a prompt to continue with the built project, by the tokenizer.json of the folder",
    )
    made.add_argument("--generate", type=int, help="number of new tokens after it (64)")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Compiles a model.

    Returns:
        The exit status: 0; 1 if the model is invalid or not supported; 4 if the check differs.
    """
    arguments_parser = parser()
    given = vars(arguments_parser.parse_args(arguments))
    folder, dtype = given.pop("folder"), given.pop("dtype")
    texts, count = given.pop("text"), given.pop("generate")
    decodes, prefill, length = given.pop("decode"), given.pop("prefill"), given.pop("length")
    lengths = given.pop("lengths")
    if lengths and (decodes or prefill or length or texts):
        arguments_parser.error(
            "--lengths is of a model that does not generate: no --prefill, --decode, --length, "
            "--text with it"
        )
    if count is not None and not texts:
        arguments_parser.error("--generate needs --text")
    given["build"] |= bool(texts)
    try:
        if lengths:
            from ttcodegen.torch.pretrained import compile_encoder, load_encoder

            out = compile_encoder(load_encoder(folder, dtype), lengths=lengths, **given)
        else:
            from ttcodegen.torch.generation import compile_decoder, load_decoder

            model = load_decoder(folder, dtype)
            out = compile_decoder(model, prefill=prefill or [32], length=length, **given)
        continued = _continued(out, folder, texts, count or 64) if texts else []
    except CompileError as error:
        message = error.render()
        print(message if "error: " in message else f"error: {message}", file=sys.stderr)
        return FAILED
    except ModuleError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    except CheckError as error:
        print(f"error: {error}", file=sys.stderr)
        return MISMATCH
    print(f"wrote {out}" + (", checked" if given["check"] else ""))
    for text in continued:
        print(text)
    return 0


def _continued(out: Path, folder: str, texts: Sequence[str], count: int) -> list[str]:
    """Continuations of the texts that the project generates."""
    with load(out) as loaded:
        return loaded.generate_text(texts, count, tokenizer=folder)


if __name__ == "__main__":
    sys.exit(main())
