"""Programs of linalg around one operation, checked against numpy."""

from __future__ import annotations

import numpy as np

from tests.frontends.running import ops_of, read, run

RANDOM = np.random.default_rng(1)


def draw(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def type_of(array: np.ndarray) -> str:
    element = {"float32": "f32", "int64": "i64"}[array.dtype.name]
    return f"tensor<{'x'.join([*map(str, array.shape), element])}>"


def check(body: str, inputs: list[np.ndarray], *expected: np.ndarray, maps: str = "") -> list[str]:
    """A function of %a, %b, ... whose body gives %r, or %r#0 and %r#1; gives the ops it becomes."""
    arguments = ", ".join(f"%{chr(97 + i)}: {type_of(x)}" for i, x in enumerate(inputs))
    types = ", ".join(map(type_of, expected))
    names = ["%r"] if len(expected) == 1 else [f"%r#{i}" for i in range(len(expected))]
    text = f"""{maps}
func.func @f({arguments}) -> ({types}) {{
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  {body}
  return {", ".join(names)} : {types}
}}"""
    for found, wanted in zip(run(text, *inputs), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    return ops_of(read(text))


def started(value: str, result: np.ndarray, name: str = "o") -> str:
    """A result that starts from a number."""
    type_ = type_of(result)
    return (
        f"%e{name} = tensor.empty() : {type_}\n"
        f"%{name} = linalg.fill ins({value} : f32) outs(%e{name} : {type_}) -> {type_}\n"
    )
