"""Makes mutants: texts and bytes that are nearly right."""

from __future__ import annotations

import dataclasses
import random
import re
import struct
from collections.abc import Iterator
from typing import Any, cast

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[%@#!^]?[A-Za-z_$][\w$.-]*|[%#^]?\d+(?:\.\d+)?|\s+|.')

_NUMBERS = ("0", "-1", "1", "2", "7", "31", "33", "65536", "4294967295", "4294967296", "2147483648",
            "9223372036854775807", "18446744073709551616", "1.5", "1e999", "-0.0", "0x7fc00000",
            "9" * 5000)  # fmt: skip
_TYPES = ("f32", "bf16", "i1", "i8", "ui32", "si32", "i64", "f64", "f16", "index", "i128", "i5",
          "complex<f32>", "none", "tensor<f32>", "tensor<?xf32>", "tensor<*xf32>", "tensor<0xf32>",
          "tensor<4x4xf32>", "tensor<2147483648xf32>", "tensor<1x1x1x1x1x1x1x1x1xf32>",
          "memref<4xf32>", "vector<4xf32>", "tuple<>", "!quant.uniform<i8:f32, 0.1>")  # fmt: skip
_WORDS = ("dense<>", "dense<[]>", "dense<[ , 1]>", "dense<1.0>", 'dense<"0x00">', "unit", "true",
          '"\\FF"', "@x", "%0", "%arg0", "^bb0", "#loc", "loc(unknown)", "func.call", "return",
          '"ttir.add"', '"ttir.constant"', "array<i64: 1, 2>", "affine_map<(d0) -> (d0)>", "{", "}",
          "(", ")", "<", ">", "[", "]", ",", ":", "->", "=")  # fmt: skip


def mutated_text(text: str, other: str, numbers: random.Random) -> str:
    """`text` with a few of its tokens changed, or with a piece of `other` in it."""
    tokens = _TOKEN.findall(text)
    for _ in range(numbers.choice((1, 1, 1, 2, 3, 6))):
        if not tokens:
            break
        place = numbers.randrange(len(tokens))
        match numbers.randrange(10):
            case 0:
                del tokens[place : place + numbers.choice((1, 1, 2, 5, 40))]
            case 1:
                end = place + numbers.choice((1, 2, 5, 40))
                tokens[place:place] = tokens[place:end]
            case 2:
                with_ = numbers.randrange(len(tokens))
                tokens[place], tokens[with_] = tokens[with_], tokens[place]
            case 3:
                tokens[place] = numbers.choice(_WORDS)
            case 4 | 5:
                _replace(tokens, r"-?\d+(?:\.\d+)?$", _NUMBERS, numbers)
            case 6:
                _replace(tokens, r"(?:tensor|[fbsu]?[if]\d+|index)", _TYPES, numbers)
            case 7:
                _replace(tokens, r"[%@]", tuple(t for t in tokens if t[0] in "%@"), numbers)
            case 8:
                _replace(tokens, r'"', tuple(t for t in tokens if t[0] == '"'), numbers)
            case _:
                lines = other.splitlines(keepends=True)
                start = numbers.randrange(len(lines)) if lines else 0
                tokens[place:place] = lines[start : start + numbers.choice((1, 1, 3))]
    mutant = "".join(tokens)
    return mutant[: numbers.randrange(len(mutant) + 1)] if numbers.random() < 0.03 else mutant


def _replace(
    tokens: list[str], pattern: str, values: tuple[str, ...], numbers: random.Random
) -> None:
    places = [i for i, token in enumerate(tokens) if re.match(pattern, token)]
    if places and values:
        tokens[numbers.choice(places)] = numbers.choice(values)


_HOSTILE = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0,
            0xFFFFFFFF)  # fmt: skip


def mutated_bytes(data: bytes, numbers: random.Random) -> bytes:
    """`data` with a few bytes or words changed, moved, taken out or cut off."""
    mutant = bytearray(data)
    for _ in range(numbers.choice((1, 1, 1, 2, 4, 16))):
        if len(mutant) < 8:
            break
        place = numbers.randrange(len(mutant))
        match numbers.randrange(7):
            case 0:
                mutant[place] = numbers.randrange(256)
            case 1:
                mutant[place] ^= 1 << numbers.randrange(8)
            case 2:
                word = place // 4 * 4 % (len(mutant) - 4)
                struct.pack_into("<I", mutant, word, numbers.choice(_HOSTILE))
            case 3:
                word = place // 4 * 4 % (len(mutant) - 4)
                value = struct.unpack_from("<I", mutant, word)[0] + numbers.choice((-4, -1, 1, 4))
                struct.pack_into("<I", mutant, word, value % 2**32)
            case 4:
                source = numbers.randrange(len(mutant))
                piece = mutant[source : source + 8]
                mutant[place : place + len(piece)] = piece
            case 5:
                short = place // 2 * 2 % (len(mutant) - 2)
                struct.pack_into("<H", mutant, short, numbers.choice(_HOSTILE) % 2**16)
            case _:
                if numbers.random() < 0.1:
                    del mutant[place:]
    return bytes(mutant)


def mutated_record(record: Any, numbers: random.Random) -> Any:
    """A tree of dataclasses and tuples with a few of its leaves and lists changed: what no damage
    of bytes gives, a file that decodes and makes no sense."""
    for _ in range(numbers.choice((1, 1, 1, 2, 3))):
        texts = sorted({leaf for leaf in _leaves(record) if isinstance(leaf, str)})
        record = _changed(record, numbers, texts)
    return record


def _leaves(node: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        for field in dataclasses.fields(node):
            yield from _leaves(getattr(node, field.name))
    elif isinstance(node, tuple):
        for part in cast("tuple[Any, ...]", node):
            yield from _leaves(part)
    else:
        yield node


def _changed(node: Any, numbers: random.Random, texts: list[str]) -> Any:
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        fields = [field.name for field in dataclasses.fields(node)]
        # Versions are distinguished first: a change there hides all others.
        fields = [name for name in fields if name not in ("major", "minor")]
        # What is large is chosen more often: the shapes and ops of programs are there.
        weights = [sum(1 for _ in _leaves(getattr(node, name))) ** 0.5 + 0.1 for name in fields]
        (name,) = numbers.choices(fields, weights)
        value = _changed(getattr(node, name), numbers, texts)
        return dataclasses.replace(node, **{name: value})
    if isinstance(node, tuple):
        return _changed_list(list(cast("tuple[Any, ...]", node)), numbers, texts)
    match node:
        case bool():
            return not node
        case int():
            return max(
                0, numbers.choice((0, 1, 2, node - 1, node + 1, node * 2, 31, 65536, 2**31 - 1))
            )
        case float():
            return numbers.choice((0.0, -1.0, 1e30, float("nan"), float("inf")))
        case str():
            return numbers.choice([*texts, "", "x"])
        case bytes():
            return node[: numbers.randrange(len(node) + 1)]
        case _:
            return node


def _changed_list(parts: list[Any], numbers: random.Random, texts: list[str]) -> tuple[Any, ...]:
    if not parts:
        return ()
    place = numbers.randrange(len(parts))
    match numbers.randrange(8):
        case 0:
            del parts[place]
        case 1:
            parts.insert(place, numbers.choice(parts))
        case 2:
            other = numbers.randrange(len(parts))
            parts[place], parts[other] = parts[other], parts[place]
        case _:
            parts[place] = _changed(parts[place], numbers, texts)
    return tuple(parts)
