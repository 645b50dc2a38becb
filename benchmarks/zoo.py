"""Compiles a zoo of models of public libraries, and compares each with its framework.

    python benchmarks/zoo.py --out zoo/ [PATTERN ...] [--level 2] [--target ttmetal] [--no-run]
    python benchmarks/zoo.py --out zoo/ --table

Each model of `zoo_models.py` is made small, compiled for one input in a process of its own, loaded
from a folder that all of them use one after the other, and run on a second input that was drawn
afterwards. What came of it is a line of `zoo/results-LEVEL-TARGET.tsv`; `--table` writes
docs/models.md of them. Needs torch, transformers, timm, torchvision, diffusers, jax, flax and
equinox; models of libraries that are not installed are left out.
"""

from __future__ import annotations

import argparse
import fnmatch
import multiprocessing
import os
import re
import resource
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import zoo_models

ROOT = Path(__file__).parent.parent
AGREES, DIFFERS, ROUNDED, REFUSED, FAILS = "agrees", "differs", "rounded", "refused", "fails"
NOT_EXPORTED = "not exported"
NOT_MADE = "not made"
"""The library cannot make the model of the small configuration, or not run it."""
LATE = "late"
MEMORY = 14 << 30
_DECLARED = re.compile(
    r"^\s+(?:const )?(?:auto|ttnn::Tensor|Tensor)&? (?:(\w+)(?: =|\(|\{)|\[([\w, ]+)\] =)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Result:
    """Outcome of one model, a line of the results."""

    model: str
    status: str
    error: str = ""
    """The worst error of an output relative to its magnitude."""
    names: int = 0
    numbered: int = 0
    seconds: float = 0.0
    reason: str = ""

    def line(self) -> str:
        return "\t".join(re.sub(r"\s+", " ", str(each)) for each in asdict(self).values())

    @staticmethod
    def of(line: str) -> Result:
        values = line.rstrip("\n").split("\t")
        kinds = {"names": int, "numbered": int, "seconds": float}
        named = zip(fields(Result), values, strict=True)
        return Result(**{f.name: kinds.get(f.name, str)(value) for f, value in named})


def flat(value: Any) -> Iterator[np.ndarray]:
    """The arrays of nested results, in order."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from flat(each)
    elif hasattr(value, "detach"):
        value = value.detach()
        yield value.float().numpy() if str(value.dtype) == "torch.bfloat16" else value.numpy()
    elif hasattr(value, "__array__"):
        yield np.asarray(value)
    elif hasattr(value, "to_tuple"):
        yield from flat(value.to_tuple())


def names_of(folder: Path) -> list[str]:
    """The names of tensors that the C++ of a project declares."""
    texts = (each.read_text() for each in sorted((folder / "src").glob("*.cpp")))
    found = (match for text in texts for match in _DECLARED.finditer(text))
    return [name for match in found for name in (match[1] or match[2]).split(", ")]


def judged(found: list[np.ndarray], expected: list[np.ndarray]) -> tuple[str, str, str]:
    """Status, worst error and reason of outputs beside those of the framework."""
    from ttcodegen.numerics.comparison import compare, reference_tolerance

    if len(found) != len(expected):
        return DIFFERS, "", f"{len(found)} outputs instead of {len(expected)}"
    worst = 0.0
    for place, (actual, wanted) in enumerate(zip(found, expected, strict=True)):
        bounds = reference_tolerance(wanted.dtype, depends_on_floats=True)
        verdict = compare(actual, wanted, bounds)
        if wanted.size:
            finite = np.abs(np.nan_to_num(np.asarray(wanted, np.float64)))
            worst = max(worst, verdict.max_abs_err / (float(finite.max()) or 1.0))
        if not verdict.passed:
            return DIFFERS, f"{worst:.1e}", f"output {place}: {verdict.reason}"
    return AGREES, f"{worst:.1e}", ""


def tried(name: str, out: Path, options: Mapping[str, Any], run: bool) -> Result:
    """Outcome of one model in this process."""
    import ttcodegen
    from ttcodegen.foundation.diagnostics import CompileError

    try:
        model = zoo_models.made(name)
        model.expected(0)
    except Exception as error:  # Of the library, whatever it is.
        return Result(name, NOT_MADE, reason=f"{type(error).__name__}: {error}"[:300])
    try:
        model.compile(out, **options)
    except CompileError as error:
        said = str(error).splitlines()
        exported = "cannot export the module" not in " ".join(said)
        said = [each for each in said if "error" in each] or said
        status = NOT_EXPORTED if not exported or "cannot lower" in said[0] else REFUSED
        return Result(name, status, reason=" | ".join(said)[:600])
    names = names_of(out)
    counts = {"names": len(names), "numbered": sum(bool(re.search(r"_\d+$", n)) for n in names)}
    expected = [*flat(model.expected(1))]
    if not run:
        status, error, reason = judged(of_source(model), expected)
        return Result(name, status, error, **counts, reason=reason)
    with ttcodegen.load(out) as loaded:
        found = [*flat(loaded.functions[0](*model.arguments(1)[0], **model.arguments(1)[1]))]
    status, error, reason = judged(found, expected)
    if status == DIFFERS and judged(of_source(model), expected)[0] == AGREES:
        status, reason = ROUNDED, f"{reason}; the same program without rounding agrees"
    return Result(name, status, error, **counts, reason=reason)


def of_source(model: zoo_models.Model) -> list[np.ndarray]:
    """Results of what the front end made of a model for the second input, in numpy."""
    from xdsl.dialects.func import FuncOp

    from ttcodegen.foundation.diagnostics import Source
    from ttcodegen.frontends import read_module
    from ttcodegen.numerics.golden_values import Golden

    text, weights = model.source()
    module = read_module(Source("model.mlir", text))
    name = next(op for op in module.ops if isinstance(op, FuncOp)).sym_name.data
    return Golden(module).run(name, [*weights, *flat(model.arguments(1))])


def _work(name: str, args: argparse.Namespace, channel: Connection) -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with (args.out / "log.txt").open("w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        options = {"optimize": args.level, "target": args.target}
        try:
            result = tried(name, args.out / "project", options, not args.no_run)
        except BaseException as error:
            traceback.print_exc()
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            said = f"{type(error).__name__} at {where}: {error}"
            result = Result(name, FAILS, reason=said[:600])
            log.flush()
            (args.out / f"{name.replace('/', '.')}.log").write_text(
                (args.out / "log.txt").read_text()
            )
    channel.send(result)


def attempt(name: str, args: argparse.Namespace) -> Result:
    """Outcome of one model in a process of its own, within its limits."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(name, args, sender))
    start = time.monotonic()
    process.start()
    sender.close()
    result = Result(name, LATE, reason=f"not done within {args.limit:.0f} s")
    if receiver.poll(args.limit):
        try:
            result = receiver.recv()
        except EOFError:
            process.join()
            result = Result(name, FAILS, reason=f"the process ended with {process.exitcode}")
    if process.is_alive() and result.status == LATE and process.pid:
        os.killpg(process.pid, 9)
    process.join()
    return replace(result, seconds=round(time.monotonic() - start, 1))


def _results(file: Path) -> dict[str, Result]:
    lines = file.read_text().splitlines() if file.is_file() else []
    return {result.model: result for result in map(Result.of, lines)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="models, as timm/*")
    parser.add_argument("--out", type=Path, required=True, help="folder of results and projects")
    parser.add_argument("--level", type=int, default=0)
    parser.add_argument("--target", default="ttnn", choices=("ttnn", "ttmetal"))
    parser.add_argument("--limit", type=float, default=120, help="seconds for one model")
    parser.add_argument("--every", type=int, default=1, help="each how many-th model")
    parser.add_argument("--status", help="only models of this status before")
    parser.add_argument("--missing", action="store_true", help="only models without a result")
    parser.add_argument("--no-run", action="store_true", help="compile, run the source in numpy")
    parser.add_argument("--table", action="store_true", help="write docs/models.md")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.table:
        write_table(args.out)
        return
    kind = "source" if args.no_run else "results"
    file = args.out / f"{kind}-{args.level}-{args.target}.tsv"
    before = _results(file)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    zoo_models.load_libraries()
    for name in zoo_models.NAMES[:: args.every]:
        if args.patterns and not any(fnmatch.fnmatch(name, each) for each in args.patterns):
            continue
        if (args.status and (name not in before or before[name].status != args.status)) or (
            args.missing and name in before
        ):
            continue
        result = attempt(name, args)
        with file.open("a") as lines:
            lines.write(result.line() + "\n")
        print(result.line())
    found = _results(file)
    print(Counter(result.status for result in found.values()))
    numbered = sum(r.numbered for r in found.values()) / (sum(r.names for r in found.values()) or 1)
    print(f"names with a number: {numbered:.1%}")


_HEAD = """# A zoo of models

This page is written by `python benchmarks/zoo.py --out DIR --table` from what `benchmarks/zoo.py`
measured. Each model is a class of a public library with a small configuration and weights from a
seed (`benchmarks/zoo_models.py`, `zoo_jax.py`). It is compiled for one input, loaded from a folder
that all of them use one after the other, and run on the CPU backend on a second input, drawn after
the compilation. What it returns is compared with the library's own results, within the tolerance
that `--check` has for frameworks.

| | |
|---|---|
| agrees | every output does |
| rounded | the first output that does not is named; numpy, which rounds less, agrees |
| differs | the first output that does not is named |
| refused | ttcodegen says what it does not support |
| not exported | `torch.export` or jax cannot lower the model: control flow depends on values |
| fails | an error without a message for users |
| late | it was not done within its time on a machine with other work |

Where a title says that the source is in numpy, the C++ was written but not built: the module that
the front end made of the model was run instead. Models that are compiled alone were written as C++
without a comparison; what is listed in one table is not in the next one of the same target.

The error is the largest one of an output, relative to the largest element of that output: float32
is multiplied with the fidelity that the level chooses. Names are variables of tensors in the C++,
and how many of them end in a number.
"""


_KINDS = {
    "results": "",
    "source": ", the source in numpy",
    "compile": ", compiled alone",
}


def _order(file: Path) -> tuple[int, str]:
    return [*_KINDS].index(file.stem.split("-")[0]), file.stem


def write_table(folder: Path) -> None:
    """Writes docs/models.md."""
    text = [_HEAD]
    for file in sorted(folder.glob("*-*-*.tsv"), key=_order):
        kind, level, target = file.stem.split("-")
        found = [each for each in _results(file).values() if each.status != NOT_MADE]
        if not found:
            continue
        counts = Counter(each.status for each in found)
        names, numbered = sum(e.names for e in found), sum(e.numbered for e in found)
        listed = ", ".join(f"{count} {status}" for status, count in counts.most_common())
        text.append(
            f"\n## `--target {target}`, level {level}{_KINDS[kind]}\n\n"
            f"{len(found)} models: {listed}."
        )
        if counts[AGREES]:
            lowered = len(found) - counts[NOT_EXPORTED]
            text.append(f" Of those that are lowered {counts[AGREES] / lowered:.1%} agree.")
        if names:
            text.append(f" {numbered / names:.1%} of {names:,} names end in a number.")
        text.append("\n\n| model | | error | names | with a number | reason |\n")
        text.append("|---|---|---|---|---|---|\n")
        for each in sorted(found, key=lambda e: zoo_models.NAMES.index(e.model)):
            reason = re.sub(r"\S*/site-packages/", "", each.reason).replace("|", ";")[:200]
            cells = [each.model, each.status, each.error, each.names or ""]
            cells += [each.numbered if each.names else "", f"`{reason}`" if reason else ""]
            text.append(f"| {' | '.join(map(str, cells))} |\n")
    (ROOT / "docs" / "models.md").write_text("".join(text))


if __name__ == "__main__":
    main()
