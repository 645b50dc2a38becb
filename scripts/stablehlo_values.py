"""Puts StableHLO's own testdata to the compiler: functions with inputs and the values jax expects.

usage: python -m scripts.stablehlo_values FOLDER|values|built [--run flatbuffer|cpp]
       [--only TEXT]... [--sample N | --part K/N] [--complex]
       [--results TABLE | --merge TABLE...] [--write PAGE] [OPTION...]

FOLDER has modules as in `stablehlo/testdata` of openxla/stablehlo: `@inputs` and `@expected` give
constants, `@main` computes. Each is compiled alone, with the OPTIONs of ttcodegen; what compiles is
run as a flatbuffer, or in bundles as C++ on the CPU backend, and compared: integers and booleans
exactly, floats by 2 % (f16 3 %, bf16 6 %) or 0.4 % of the largest. Modules of complex numbers are
judged with --complex, and no others: the numbers are pairs, in a last dimension. Prints a line for
each that is not right, and how many are; with --write, the page docs/judges.md gets these as well,
in place of what an earlier run with the same options found.
What takes long is judged in parts: --results keeps what each has found in a table of its own, as it
is found, and --merge reads such tables instead of judging.
`values` and `built` are the selections of tests/judges: values at the edges of numpy's and jax's
types, and ops with the options of the reference project's golden tests. Needs jax, `built` torch.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import re
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import ttcodegen
from ttcodegen.cli.ttcodegen import main as compile_project

BUNDLE = 36
"""Functions of one project: a compiler takes some seconds for each."""
_FLOATS = {
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.bool_,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}
_ERRORS = {"float64": 2e-2, "float32": 2e-2, "float16": 3e-2}
"""Relative errors by dtype; those of other floats are larger."""


@dataclass(frozen=True)
class Judged:
    """A function of a module, its inputs and what it has to give."""

    name: str
    function: str
    text: str
    inputs: Sequence[np.ndarray]
    expected: Sequence[np.ndarray]
    with_constants: str = ""
    """The function without arguments, for what needs their values at compile time."""


@dataclass
class Outcome:
    """The results of all modules."""

    counts: Counter[str]
    lines: list[str]
    """Of those that are not right: name, what they are, and why."""
    results: Path | None = None
    """The table that gets a line for each."""

    def add(self, name: str, kind: str, why: str = "") -> None:
        """Counts one of them, and prints it if it is not right."""
        self.counts[kind] += 1
        line = f"{name}\t{kind}\t{' '.join(why.split())[:200]}"
        if self.results is not None:
            with self.results.open("a") as table:
                table.write(f"{line}\n")
        if kind != "right":
            self.lines.append(line)
            print(line, flush=True)

    @classmethod
    def merged(cls, tables: Iterable[Path]) -> Outcome:
        """The outcome of earlier runs; a module that several have judged counts as in the last."""
        outcome = cls(Counter(), [])
        lines = (line for table in tables for line in table.read_text().splitlines())
        for name, kind, why in {each.split("\t")[0]: each.split("\t") for each in lines}.values():
            outcome.add(name, kind, why)
        return outcome

    def summary(self) -> str:
        """The count of right modules, and the others by outcome."""
        counts = self.counts
        others = ", ".join(f"{counts[kind]} {kind}" for kind in ("wrong", "refused", "crashed"))
        return f"{counts['right']} right of {sum(counts.values())} ({others})"


def read(path: Path, index: int) -> Judged:
    """The main function of a module under a name of its own, with constants that are expected."""
    from jax._src.interpreters import mlir as jax_mlir
    from jaxlib.mlir import ir

    text = path.read_text()
    with jax_mlir.make_ir_context():
        module = ir.Module.parse(text)
        inputs, expected = (_constants(ir, module, name) for name in ("inputs", "expected"))
    kept = "\n".join(
        line
        for block in re.split(r"(?m)^(?=  func\.func )", text)
        if not re.match(r"  func\.func private @(inputs|expected)\(", block)
        for line in block.splitlines()
        if not re.search(r"@check\.expect|call @expected\(\)|^module|^//|^\}", line)
    )
    arguments = ""
    if call := re.search(r"(?m)^\s*(%\w+)(?::\d+)? = call @inputs\(\) : \(\) -> (.*)$", kept):
        kept = kept.replace(call[0], "")
        types = re.findall(r"tensor<(?:[^<>]|<[^<>]*>)*>", call[2])
        arguments = ", ".join(f"%in{i}: {type_}" for i, type_ in enumerate(types))
        kept = re.sub(re.escape(call[1]) + r"#(\d+)\b", r"%in\1", kept)
        kept = re.sub(re.escape(call[1]) + r"(?![\w#:])", "%in0", kept)
    kept = re.sub(r"(?m)^\s*(?:%\w+(?::\d+)? = )?call @inputs\(\).*$", "", kept)
    kept = kept.replace("@main()", f"@main({arguments})")
    function = f"t{index}"
    for symbol in set(re.findall(r"func\.func (?:public|private) @([\w.$]+)", kept)):
        new = function if symbol == "main" else f"{function}_{symbol}"
        kept = re.sub(rf"@{re.escape(symbol)}(?![\w.$])", f"@{new}", kept)
    return Judged(path.stem, function, kept, inputs, expected)


def _constants(ir: Any, module: Any, name: str) -> list[np.ndarray]:
    for function in module.body.operations:
        named = function.operation.name == "func.func"
        if named and function.attributes["sym_name"].value == name:
            returned = list(function.regions[0].blocks[0].operations)[-1].operands
            return [
                _pairs(ir, value)
                if "complex<" in str(value.type)
                else array_of(ir, value.owner.attributes["value"])
                for value in returned
            ]
    return []


def _pairs(ir: Any, value: Any) -> np.ndarray:
    """Complex numbers of a constant, as pairs: the bindings do not have their attribute."""
    shaped = ir.ShapedType(value.type)
    dtype = np.dtype(np.float32 if "f32" in str(shaped.element_type) else np.float64)
    text = re.search(r"(?s)dense<.*> : ", str(value.owner))
    assert text is not None
    pairs = _floats_in(text[0], dtype).reshape(-1, 2)
    return np.broadcast_to(pairs, (prod(shaped.shape), 2)).reshape([*shaped.shape, 2])


def array_of(ir: Any, attribute: Any) -> np.ndarray:
    """The numbers of a dense attribute of the bindings of jax."""
    shaped = ir.ShapedType(attribute.type)
    element, shape = str(shaped.element_type), shaped.shape
    dtype = np.dtype(_FLOATS.get(element, element.replace("i", "int")))
    if attribute.is_splat:
        value = ir.DenseElementsAttr(attribute).get_splat_value()
        return np.full(shape, getattr(value, "value", value)).astype(dtype)
    if element in ("f32", "f64"):
        numbers = ir.DenseFPElementsAttr(attribute)
    elif element in _FLOATS and element != "i1":
        return _floats_in(str(attribute), dtype).reshape(shape)
    else:
        numbers = ir.DenseIntElementsAttr(attribute)
    return np.array([numbers[i] for i in range(len(numbers))], dtype=dtype).reshape(shape)


def _floats_in(text: str, dtype: np.dtype[Any]) -> np.ndarray:
    """The numbers in the text of an attribute: the bindings have none of some types."""
    body = text[6:].rsplit("> :", 1)[0]
    if body.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(body[3:-1]), dtype=dtype)
    bits = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype.itemsize]
    return np.array(
        [
            np.array(int(number, 16), dtype=bits).view(dtype)
            if number.startswith("0x")
            else np.array(float(number)).astype(dtype)
            for number in re.findall(r"[-+\w.]+", body)
        ],
        dtype=dtype,
    )


def differs(found: np.ndarray, expected: np.ndarray) -> str:
    """Says what is not as expected; nothing if all is."""
    if found.shape != expected.shape:
        return f"shape {found.shape} not {expected.shape}"
    if expected.dtype.kind in "biu":
        same = found.astype(np.int64) == expected.astype(np.int64)
    else:
        relative = _ERRORS.get(expected.dtype.name, 6e-2)
        a, b = found.astype(np.float64), expected.astype(np.float64)
        finite = np.isfinite(b)
        scale = np.abs(b[finite]).max() if finite.any() else 1.0
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= relative * np.abs(b) + 4e-3 * scale + 1e-6
        same = (np.isnan(a) & np.isnan(b)) | (a == b) | near
    if same.all():
        return ""
    first = tuple(np.argwhere(~same)[0])
    count = int((~same).sum())
    return f"{count} of {same.size} differ, e.g. {found[first]} not {expected[first]}"


def _all_differences(found: Sequence[Any], judged: Judged) -> str:
    pairs = zip(found, judged.expected, strict=True)
    return "; ".join(said for a, b in pairs if (said := differs(np.asarray(a), b)))


def _compiled(text: str, folder: Path, options: Sequence[str]) -> tuple[int, str]:
    """The exit status of compiling one function, and the error."""
    file = folder / "one.mlir"
    file.write_text(f"module {{\n{text}\n}}\n")
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        arguments = [str(file), "-o", str(folder / "one"), "--force", "-q", "--no-format"]
        status = compile_project([*arguments, *options])
    errors = [line for line in said.getvalue().splitlines() if "error" in line]
    return status, errors[0][-160:] if errors else ""


def _run_flatbuffer(judged: Judged, folder: Path) -> str:
    from ttcodegen.numerics.lowered import interpreter_of, read_flatbuffer

    (file,) = (folder / "one").glob("model.tt*")
    try:
        program = read_flatbuffer(file.read_bytes())
        with np.errstate(all="ignore"):
            found = interpreter_of(program).run(judged.function, list(judged.inputs))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return _all_differences(found, judged)


def _run_bundle(part: Sequence[Judged], folder: Path, options: Sequence[str]) -> Iterator[str]:
    """The differences of each function of a project, built and run in a process of its own."""
    file, out = folder / "bundle.mlir", folder / "bundle"
    text = "\n".join(judged.text for judged in part)
    file.write_text(f"module {{\n{text}\n}}\n")
    said = apart(lambda: _outcomes(part, file, out, options))
    yield from [said] * len(part) if isinstance(said, str) else said


def apart(run: Callable[[], list[Any]]) -> list[Any] | str:
    """Runs a function in a process of its own: its result, or the reason for its failure."""
    with tempfile.TemporaryFile() as answer:
        child = os.fork()
        if child == 0:
            # Nothing of the parent is to be cleaned up here.
            try:
                found: list[Any] | str = run()
            except BaseException as error:
                found = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
            answer.write(json.dumps(found).encode())
            answer.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        answer.seek(0)
        text = answer.read()
    if os.WIFSIGNALED(status) or not text:
        return f"the process ended with {signal.Signals(os.WTERMSIG(status)).name}"
    return json.loads(text)


def _outcomes(part: Sequence[Judged], file: Path, out: Path, options: Sequence[str]) -> list[str]:
    with contextlib.redirect_stderr(io.StringIO()):
        arguments = [str(file), "-o", str(out), "--force", "-q", "--build", "--no-format"]
        status = compile_project([*arguments, *options])
    if status != 0:
        return [f"the bundle ended with status {status}"] * len(part)
    model = ttcodegen.load(out)
    said: list[str] = []
    for judged in part:
        try:
            found = getattr(model, judged.function)(*judged.inputs)
            several = list(found) if isinstance(found, tuple | list) else [found]
            said.append(_all_differences(several, judged))
        except Exception as error:
            said.append(f"{type(error).__name__}: {error}")
    return said


def judge(
    functions: Iterable[Judged], run: str, options: Sequence[str], results: Path | None = None
) -> Outcome:
    """Compiles and runs all functions."""
    outcome, compiled = Outcome(Counter(), [], results), list[Judged]()
    with tempfile.TemporaryDirectory(prefix="values-") as scratch:
        folder = Path(scratch)
        for judged in functions:
            status, error = _compiled(judged.text, folder, options)
            if status and judged.with_constants:
                judged = replace(judged, text=judged.with_constants, inputs=[])
                status, error = _compiled(judged.text, folder, options)
            if status:
                outcome.add(judged.name, "refused" if status == 1 else "crashed", error)
            elif run == "cpp":
                compiled.append(judged)
            else:
                said = _run_flatbuffer(judged, folder)
                outcome.add(judged.name, "wrong" if said else "right", said)
        for begin in range(0, len(compiled), BUNDLE):
            part = compiled[begin : begin + BUNDLE]
            for judged, said in zip(part, _run_bundle(part, folder, options), strict=True):
                outcome.add(judged.name, "wrong" if said else "right", said)
    return outcome


def write_rows(
    page: Path, set_: str, how: str, cells: Sequence[object], others: Mapping[str, str]
) -> None:
    """Puts what a run found between the marks of a page.

    Args:
        page: a page with the marks `SET runs` and `SET others`.
        set_: what was judged.
        how: options and kind of the run: the first cell of its row of the table, and what the list
            says beside what it found; an earlier run of the same kind is replaced.
        cells: the other cells of the row.
        others: what is not right, and how it ended.
    """
    text = page.read_text()
    table = re.search(rf"(?s)(<!-- {set_} runs -->\n)(.*?)(<!-- end -->)", text)
    listed = re.search(rf"(?s)(<!-- {set_} others -->\n)(.*?)(<!-- end -->)", text)
    if table is None or listed is None:
        raise SystemExit(f"{page} has no place for the outcome")
    rows = [line for line in table[2].splitlines() if line and not line.startswith(f"| {how} |")]
    rows.append(f"| {how} | {' | '.join(map(str, cells))} |")
    found: dict[str, list[tuple[str, str]]] = {name: [(kind, how)] for name, kind in others.items()}
    for line in listed[2].splitlines():
        if entry := re.match(r"- `([^`]*)`: (.*)", line):
            for kind, runs in re.findall(r"([\w-]+) \(([^)]*)\)", entry[2]):
                kept = ((kind, each) for each in runs.split("; ") if each != how)
                found.setdefault(entry[1], []).extend(kept)
    lines: list[str] = []
    for name in sorted(found):
        kinds = sorted({kind for kind, _ in found[name]})
        runs = ("; ".join(sorted(each for kind, each in found[name] if kind == of)) for of in kinds)
        said = ", ".join(f"{kind} ({each})" for kind, each in zip(kinds, runs, strict=True))
        lines += [f"- `{name}`: {said}"] if said else []
    text = text.replace(table[0], "\n".join([table[1].rstrip("\n"), *rows, table[3]]))
    text = text.replace(listed[0], "\n".join([listed[1].rstrip("\n"), *lines, listed[3]]))
    page.write_text(text)


def finish(
    outcome: Outcome, run: str, options: Sequence[str], set_: str, page: Path | None
) -> None:
    """Prints how many are right, and writes what was found to a page."""
    print(outcome.summary())
    if page is not None:
        counts = outcome.counts
        total = sum(counts.values())
        numbers = [total, *(counts[kind] for kind in ("right", "wrong", "refused", "crashed"))]
        how = f"`{' '.join(options) or 'no options'}`, {'C++' if run == 'cpp' else 'flatbuffer'}"
        others = {name: kind for name, kind, _ in (line.split("\t") for line in outcome.lines)}
        share = f"{100 * counts['right'] / total:.1f} %"
        write_rows(page, set_, how, [*numbers, share], others)


def functions(
    folder: Path,
    only: Sequence[str] = (),
    sample: int = 0,
    part: tuple[int, int] = (0, 1),
    is_complex: bool = False,
) -> Iterator[Judged]:
    """The functions of a folder's modules, of real or of complex numbers; a sample of them, the
    same each time, if not all, or a part of so many."""
    found = sorted(folder.glob("*.mlir"))
    named = [path for path in found if not only or any(text in path.stem for text in only)]
    chosen = [path for path in named if ("complex<" in path.read_text()) == is_complex]
    if sample:
        chosen = random.Random(0).sample(chosen, min(sample, len(chosen)))
    place, parts = part
    for index, path in enumerate(chosen[place::parts]):
        yield read(path, index)


def selected(name: str, only: Sequence[str] = ()) -> Iterator[Judged]:
    """The functions of a selection of tests/judges."""
    from tests.judges.built import built
    from tests.judges.built_ops import built_ops
    from tests.judges.values import cases

    for case in [*built(), *built_ops()] if name == "built" else cases():
        if not only or any(text in case.name for text in only):
            yield Judged(case.name, case.name, case.text(), case.inputs, [case.expected])


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    """The arguments that judges of folders share; those that it leaves are options of ttcodegen."""
    parser = argparse.ArgumentParser(description=description, usage=argparse.SUPPRESS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--run", choices=["flatbuffer", "cpp"], default="cpp")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--results", type=Path, help="a table that gets a line for each function")
    parser.add_argument("--merge", type=Path, nargs="+", default=[], help="tables to be counted")
    parser.add_argument("--write", type=Path)
    return parser


def main() -> int:
    """Prints the functions that are not right, and a count of each outcome."""
    parser = argument_parser(__doc__)
    parser.add_argument("--sample", type=int, default=0, help="of how many modules, if not of all")
    parser.add_argument("--part", default="0/1", help="which of how many parts, as 3/40")
    parser.add_argument("--complex", action="store_true", help="modules of complex numbers")
    chosen, options = parser.parse_known_args()
    name = str(chosen.folder)
    set_ = name if name in ("values", "built") else "stablehlo"
    place, _, parts = chosen.part.partition("/")
    if chosen.merge:
        outcome = Outcome.merged(chosen.merge)
    elif set_ == "stablehlo":
        part = int(place), int(parts)
        asked = functions(chosen.folder, chosen.only, chosen.sample, part, chosen.complex)
        outcome = judge(asked, chosen.run, options, chosen.results)
    else:
        outcome = judge(selected(set_, chosen.only), chosen.run, options, chosen.results)
    if chosen.complex:
        options = [*options, "--complex"]
    if chosen.sample:
        options = [*options, "--sample", str(chosen.sample)]
    finish(outcome, chosen.run, options, set_, chosen.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
