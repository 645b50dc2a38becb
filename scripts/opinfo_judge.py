"""Judges the PyTorch front end by OpInfo, the database of operations that PyTorch tests itself by.

    python -m scripts.opinfo_judge --dtypes f32,i32 --ops softmax,sort --verbose
    python -m scripts.opinfo_judge --part 3/40 --run cpp --target ttmetal --results 3.tsv
    python -m scripts.opinfo_judge --merge 0.tsv 3.tsv --write docs/judges.md

Up to four samples of each operation and element type are exported and compiled, a dozen in a
module and each alone where that fails; what the module computes is compared with PyTorch, on the
samples and on a second draw of the same shapes.
`--run source` computes it in numpy in the types of the source, `--run lowered`, the default, in
numpy as calls of the library, `--run cpp` in C++ on the CPU backend, several samples in one
project; `--target ttmetal` needs that. A part is a sample of all operations and types. With
`--write`, the page gets a row of the table, and the operations that do not agree. Needs torch with
`torch.testing`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import random
import re
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from scripts.stablehlo_values import apart, write_rows

Tensor = Any  # torch is loaded when the judge runs.

DTYPES = {"f32": "float32", "bf16": "bfloat16", "i32": "int32", "bool": "bool", "i64": "int64",
          "u8": "uint8", "i16": "int16", "i8": "int8"}  # fmt: skip
"""Element types by their short names; the first six are judged if none is named."""
OUTCOMES = "agree", "wrong", "refused", "crash", "fails", "export-fails", "timeout"
RUNS = "lowered", "source", "cpp"
"""Programs that are run: the lowered one in numpy, that of the source in numpy, the C++."""
MOST_DRAWN = 120
"""The most calls that are drawn, of which the samples are chosen."""
MOST_ELEMENTS = 4096
"""The most elements of an input that is sampled ..."""
MOST_RESULTS = 20_000
"""... and of a result."""
_RANDOM = re.compile(
    r"dropout|^rand|^normal|bernoulli|cauchy|exponential|geometric|log_normal|multinomial|uniform"
    r"|^empty|new_empty|rrelu|pca_lowrank|svd_lowrank|sparse|to_sparse|complex|^polar$"
    r"|fractional_max|nested|_refs"
)
"""Operations that draw numbers, or whose tensors are of no kind that can be compared."""


@dataclass
class Sample:
    """A call of an operation: its tensors are inputs, its other arguments constants."""

    operation: str
    dtype: str
    index: int
    call: Callable[..., Any]
    leaves: Sequence[Any]
    """The arguments flat, None in the place of a tensor."""
    places: Sequence[int]
    inputs: Sequence[Tensor]
    spec: Any
    outcome: str = ""
    detail: str = ""
    second: Sequence[Tensor] = field(default_factory=tuple)
    """Inputs of another draw, of the same shapes."""

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        """The results of the call that are tensors."""
        import torch

        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        first, args, kwargs = torch.utils._pytree.tree_unflatten(leaves, self.spec)
        results = torch.utils._pytree.tree_leaves(self.call(first, *args, **kwargs))
        return [each for each in results if isinstance(each, torch.Tensor)]

    def row(self) -> str:
        """A line of the table of results."""
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, self.inputs, strict=True):
            leaves[place] = f"{str(tensor.dtype)[6:]}{list(tensor.shape)}"
        import torch

        first, args, kwargs = torch.utils._pytree.tree_unflatten(leaves, self.spec)
        what = f"{first} {args} {kwargs}"[:300]
        columns = (self.operation, self.dtype, str(self.index), self.outcome, what, self.detail)
        return "\t".join(re.sub(r"\s+", " ", column) for column in columns)


_FAULT = re.compile(r"the rule of '\S+' fails|of tensors and arguments like these")
"""Messages that say of the compiler itself that something is wrong."""


def module_of(samples: Sequence[Sample]) -> Any:
    """A module that makes the calls of the samples, with their tensors one after the other."""
    import torch

    class Calls(torch.nn.Module):
        def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
            results: list[Tensor] = []
            at = 0
            for sample in samples:
                count = len(sample.places)
                results += sample(*tensors[at : at + count])
                at += count
            return tuple(results)

    return Calls().eval()


def operations(names: Iterable[str] | None = None) -> Iterator[tuple[str, Any]]:
    """The operations of the database by name and variant, all or those that are named."""
    from torch.testing._internal import common_methods_invocations
    from torch.testing._internal.opinfo import core

    # Looking for a test case in the sources of the whole stack takes longer than drawing.
    core.extract_test_fn = lambda: None
    # Numbers that are drawn in the same way each time are drawn nevertheless.
    common_methods_invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)

    wanted = None if names is None else set(names)
    for each in common_methods_invocations.op_db:
        name = f"{each.name}.{each.variant_test_name}".rstrip(".")
        if _RANDOM.search(each.name) is None and (wanted is None or name in wanted):
            yield name, each


def _drawn(operation: Any, dtype: Any, seed: int) -> list[Any]:
    import torch

    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    try:
        found = operation.sample_inputs("cpu", dtype, requires_grad=False, set_seed=False)
    except TypeError:
        found = operation.sample_inputs("cpu", dtype, requires_grad=False)
    return list(itertools.islice(found, MOST_DRAWN))


def _sample(name: str, short: str, index: int, call: Any, drawn: Any) -> Sample | None:
    """A call that is small and of real, dense tensors; None if it is none."""
    import torch

    leaves, spec = torch.utils._pytree.tree_flatten((drawn.input, drawn.args, drawn.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    tensors = [leaves[i] for i in places]
    if not tensors or "out" in drawn.kwargs:
        return None
    if any(t.layout != torch.strided or t.is_complex() for t in tensors):
        return None
    if any(t.numel() > MOST_ELEMENTS for t in tensors):
        return None
    if any(isinstance(leaf, complex | torch.Generator) for leaf in leaves):
        return None
    inputs = [t.detach().clone(memory_format=torch.contiguous_format) for t in tensors]
    rest = [None if i in places else leaf for i, leaf in enumerate(leaves)]
    return Sample(name, short, index, call, rest, places, inputs, spec)


def samples_of(name: str, operation: Any, short: str, count: int) -> list[Sample]:
    """Samples of an operation, distributed over all that it has, which have comparable results."""
    import torch

    dtype = getattr(torch, DTYPES[short])
    if not operation.supports_dtype(dtype, "cpu"):
        return []
    try:
        drawn = _drawn(operation, dtype, 0)
    except Exception:  # Some samples need packages that are not there.
        return []
    found = [_sample(name, short, i, operation.op, each) for i, each in enumerate(drawn)]
    small = [each for each in found if each is not None]
    if len(small) > count:
        step = (len(small) - 1) / max(count - 1, 1)
        small = [small[i] for i in sorted({round(k * step) for k in range(count)})]
    chosen = [each for each in small if _is_comparable(each)]
    others: list[Any] = []
    if chosen:
        with contextlib.suppress(Exception):
            others = _drawn(operation, dtype, 1)
    for each in chosen:
        each.second = _second(others, each)
    return chosen


def _is_comparable(sample: Sample) -> bool:
    """True if its results are dense, real, small, and the same twice."""
    import torch

    try:
        with torch.no_grad():
            torch.manual_seed(0)
            once = [each.clone() for each in sample(*sample.inputs)]
            torch.manual_seed(1)
            twice = sample(*sample.inputs)
    except Exception:  # PyTorch itself refuses the sample.
        return False
    if not once or any(each.is_complex() or each.layout != torch.strided for each in once):
        return False
    pairs = zip(once, twice, strict=True)
    return all(a.numel() <= MOST_RESULTS and torch.allclose(a, b, equal_nan=True) for a, b in pairs)


def _second(others: Sequence[Any], sample: Sample) -> Sequence[Tensor]:
    """The inputs of another draw; of one that looks otherwise the first, in another order."""
    import torch

    drawn = others[sample.index] if sample.index < len(others) else None
    other = None if drawn is None else _sample("", "", sample.index, sample.call, drawn)
    if (
        other is not None
        and other.places == sample.places
        and repr(other.leaves) == repr(sample.leaves)
        and [(t.shape, t.dtype) for t in other.inputs]
        == [(t.shape, t.dtype) for t in sample.inputs]
    ):
        return other.inputs
    generator = torch.Generator().manual_seed(7)
    return [
        t.flatten()[torch.randperm(t.numel(), generator=generator)].reshape(t.shape)
        if t.is_floating_point() and t.numel()
        else t
        for t in sample.inputs
    ]


def difference(found: np.ndarray, expected: Tensor) -> str:
    """The difference of an array from a tensor; empty within the accuracy of the card's types."""
    from ttcodegen.frontends.torch.graph import tensor_array

    wanted, found = tensor_array(expected), np.asarray(found)
    if found.shape != wanted.shape or (
        found.dtype != wanted.dtype and not expected.dtype.is_floating_point
    ):
        return f"{found.dtype}{list(found.shape)} for {wanted.dtype}{list(wanted.shape)}"
    if not wanted.size:
        return ""
    if expected.dtype.is_floating_point:
        found, wanted = found.astype(np.float64), wanted.astype(np.float64)
        is_wide = expected.element_size() >= 4
        relative, absolute = (1e-2, 1e-3) if is_wide else (5e-2, 5e-2)
        finite = np.isfinite(wanted) & np.isfinite(found)
        same = (np.isnan(wanted) & np.isnan(found)) | (wanted == found)
        with np.errstate(all="ignore"):
            near = np.abs(found - wanted) <= absolute + relative * np.abs(wanted)
            # Sums that cancel are as exact as their parts.
            scale = np.abs(wanted[finite]).max(initial=0)
            near |= np.abs(found - wanted) <= (0.006 if is_wide else 0.1) * scale
        wrong = ~np.where(finite, near, same)
    else:
        wrong = found != wanted
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())}/{wrong.size} differ, first {at}: {found[at]} for {wanted[at]}"


class _TooLong(BaseException):
    """A sample takes longer than it may."""


@contextlib.contextmanager
def _within(seconds: int) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise _TooLong

    # Time of the processor: others may take most of it.
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def lower(samples: Sequence[Sample], settings: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """The model of samples, and what it compiles to with settings of `ProjectOptions`; None, and
    the reason in the samples, if it does not."""
    import torch

    import ttcodegen.torch as frontend
    from ttcodegen.foundation.diagnostics import CompileError
    from ttcodegen.framework import ProjectOptions, compile_framework_model

    module = module_of(samples)
    inputs = _draws(samples)[0]
    outcome, detail = "lowers", ""
    seconds = 60 * len(samples)
    try:
        with torch.no_grad(), contextlib.redirect_stderr(io.StringIO()), _within(seconds):
            try:
                program = torch.export.export(module, inputs)
            except Exception as error:  # What torch cannot export it says in many ways.
                outcome, detail = "export-fails", _first_line(error)
            else:
                functions = frontend.functions_of(program, inputs, {})
                model = frontend.model_of(functions, run=False)
                return model, compile_framework_model(model, "module", ProjectOptions(**settings))
    except CompileError as error:
        is_fault = _FAULT.search(str(error)) is not None
        outcome, detail = ("crash" if is_fault else "refused"), str(error)[:400]
    except _TooLong:
        outcome, detail = "timeout", f"{seconds} s"
    except Exception as error:  # It is what the judge looks for.
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
        outcome, detail = "crash", f"{_first_line(error)} @ {place}"
    for sample in samples:
        sample.outcome, sample.detail = outcome, detail
    return None


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"[:300]


def judge_in_numpy(samples: Sequence[Sample], run: str, settings: Mapping[str, Any]) -> None:
    """Lowers samples together and runs them in numpy: the module of the source, or what it was
    lowered to; halves of them, if that fails."""
    from ttcodegen.frontends import read_module
    from ttcodegen.frontends.torch.graph import tensor_array
    from ttcodegen.numerics.golden_values import Golden
    from ttcodegen.numerics.lowered import interpreter_of, read_flatbuffer

    if (lowered := lower(samples, settings)) is not None:
        model, compiled = lowered
        (function,) = model.functions
        try:
            if run == "source":
                program: Any = Golden(read_module(model.source))
            else:
                program = interpreter_of(read_flatbuffer(compiled.flatbuffer))
            with np.errstate(all="ignore"):
                results = [
                    program.run(function.name, [*map(tensor_array, draw)])
                    for draw in _draws(samples)
                ]
        except Exception as error:
            for sample in samples:
                sample.outcome, sample.detail = "fails", _first_line(error)
        else:
            _settle_all(samples, results)
            return
    if len(samples) > 1:
        half = len(samples) // 2
        judge_in_numpy(samples[:half], run, settings)
        judge_in_numpy(samples[half:], run, settings)


def _draws(samples: Sequence[Sample]) -> list[tuple[Tensor, ...]]:
    """The inputs of all samples, and those of their second draws."""
    first, second = [s.inputs for s in samples], [s.second for s in samples]
    return [tuple(itertools.chain.from_iterable(each)) for each in (first, second)]


def _settle_all(samples: Sequence[Sample], results: Sequence[Sequence[np.ndarray]]) -> None:
    at = 0
    for sample in samples:
        count = len(sample(*(tensor.clone() for tensor in sample.inputs)))
        _settle(sample, [each[at : at + count] for each in results])
        at += count


def _settle(sample: Sample, results: Sequence[Sequence[np.ndarray]]) -> None:
    import torch

    # Arguments that are changed in place follow the results of the model.
    texts: list[str] = []
    draws = ("first", sample.inputs), ("second", sample.second)
    for (draw, inputs), found in zip(draws, results, strict=True):
        with torch.no_grad():
            try:
                expected = sample(*[each.clone() for each in inputs])
            except Exception:  # The second draw need not be one that PyTorch takes.
                continue
        for index, (array, tensor) in enumerate(zip(found, expected, strict=False)):
            array = _as_declared(array, tensor)
            text = difference(array, tensor)
            if text and not _is_tie(sample, inputs, array, tensor):
                texts.append(f"{draw} draw, result {index}: {text}")
    sample.outcome, sample.detail = ("wrong" if texts else "agree"), " | ".join(texts)[:900]


def _as_declared(array: np.ndarray, tensor: Tensor) -> np.ndarray:
    """An array of the device in the type of the framework: integers have other widths there, and
    booleans are zeros and ones."""
    from ttcodegen.frontends.torch.graph import tensor_array

    declared = tensor_array(tensor).dtype
    is_exact = declared.kind in "iu" and array.dtype.kind in "iu"
    is_truth = declared.kind == "b" and bool(((array == 0) | (array == 1)).all())
    return array.astype(declared) if is_exact or is_truth else array


def _is_tie(sample: Sample, inputs: Sequence[Tensor], found: np.ndarray, wanted: Tensor) -> bool:
    """True if places differ only among equal elements, which PyTorch orders as it likes."""
    if sample.operation not in _PLACES or str(wanted.dtype) != "torch.int64" or not inputs:
        return False
    from ttcodegen.frontends.torch.graph import tensor_array

    elements, places = tensor_array(inputs[0]), wanted.numpy()
    for axis in range(elements.ndim):
        one, other = found, places
        if one.ndim == elements.ndim - 1:
            one, other = np.expand_dims(one, axis), np.expand_dims(other, axis)
        with contextlib.suppress(ValueError, IndexError):
            first, second = (np.take_along_axis(elements, each, axis) for each in (one, other))
            if np.array_equal(first, second):
                return True
    return False


_PLACES = frozenset(
    "topk sort msort argsort kthvalue median nanmedian mode cummax cummin max.reduction_with_dim "
    "min.reduction_with_dim".split()
)
"""Operations that say where elements are."""


def judge_in_cpp(samples: Sequence[Sample], folder: Path, settings: Mapping[str, Any]) -> None:
    """Builds samples that lower in one project and runs it, in a process of its own, which may end
    as it likes; halves of them, if that fails."""
    if not samples:
        return
    found = apart(lambda: _outcomes_in_cpp(samples, folder, settings))
    if isinstance(found, list):
        for sample, (outcome, detail) in zip(samples, found, strict=True):
            sample.outcome, sample.detail = outcome, detail
    elif len(samples) == 1:
        samples[0].outcome, samples[0].detail = "fails", found[:600]
    else:
        half = len(samples) // 2
        judge_in_cpp(samples[:half], folder, settings)
        judge_in_cpp(samples[half:], folder, settings)


def _outcomes_in_cpp(
    samples: Sequence[Sample], folder: Path, settings: Mapping[str, Any]
) -> list[tuple[str, str]]:
    import ttcodegen
    import ttcodegen.torch as frontend
    from ttcodegen.frontends.torch.graph import tensor_array

    draws = _draws(samples)
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.redirect_stderr(io.StringIO()):
        module = module_of(samples)
        frontend.compile(module, draws[0], out=folder, name="bundle", build=True, **settings)
    model = ttcodegen.load(folder)
    results = [model.forward(*map(tensor_array, each)) for each in draws]
    # What changes its arguments gives a pair: its results, and what they have become.
    results = [
        each[0] if len(each) == 2 and isinstance(each[1], dict) else each for each in results
    ]
    _settle_all(samples, results)
    return [(sample.outcome, sample.detail) for sample in samples]


def judged(
    names: Iterable[str] | None,
    dtypes: Sequence[str],
    *,
    count: int | Mapping[str, int] = 4,
    part: tuple[int, int] = (0, 1),
    run: str = RUNS[0],
    bundle: int = 12,
    **settings: Any,
) -> Iterator[Sample]:
    """Samples with their outcomes.

    Args:
        names: operations, all if None.
        dtypes: keys of DTYPES.
        count: how many samples of each operation and element type, or of each of these.
        part: which of how many parts of all samples.
        run: one of RUNS.
        bundle: how many samples are compiled together.
        settings: target and level of optimization, as `ttcodegen.torch.compile` takes them.
    """
    place, parts = part
    counts = dict.fromkeys(dtypes, count) if isinstance(count, int) else count
    number = itertools.count()
    chosen = (
        sample
        for name, operation in operations(names)
        for short in dtypes
        if next(number) % parts == place
        for sample in samples_of(name, operation, short, counts[short])
    )
    with tempfile.TemporaryDirectory() as folder:
        while together := list(itertools.islice(chosen, bundle)):
            if run != "cpp":
                judge_in_numpy(together, run, settings)
            else:
                lowering = [each for each in together if lower([each], settings) is not None]
                judge_in_cpp(lowering, Path(folder) / "bundle", settings)
            yield from together


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--ops", help="names, with commas between them; all if not given")
    parser.add_argument(
        "--dtypes", default="f32,bf16,i32,bool,i64,u8", help="of " + ",".join(DTYPES)
    )
    parser.add_argument(
        "--samples", default="4", help="of each operation and type; f32=16,3 has more of a type"
    )
    parser.add_argument("--part", default="0/1", help="which of how many parts, as 3/40")
    parser.add_argument("--run", choices=RUNS, default=RUNS[0])
    parser.add_argument("--target", choices=["ttnn", "ttmetal"], default="ttnn")
    parser.add_argument("--optimize", type=int, default=0)
    parser.add_argument("--results", type=Path, help="a table of all samples")
    parser.add_argument("--verbose", action="store_true", help="print all that does not agree")
    parser.add_argument("--merge", type=Path, nargs="+", default=[], help="tables of earlier parts")
    parser.add_argument("--write", type=Path, help="the page to be written to")
    chosen = parser.parse_args()
    if chosen.target == "ttmetal" and chosen.run != "cpp":
        parser.error("--target ttmetal runs with --run cpp")
    return chosen


def _counts(text: str, dtypes: Sequence[str]) -> dict[str, int]:
    """The numbers of samples by type, as `f32=16,3` has them."""
    given = {name: int(count) for name, _, count in (e.rpartition("=") for e in text.split(","))}
    return {dtype: given.get(dtype, given.get("", 4)) for dtype in dtypes}


def _rows(chosen: argparse.Namespace) -> Iterator[Sequence[str]]:
    """The columns of each sample: of tables that earlier parts have written, or judged now."""
    if chosen.merge:
        for path in chosen.merge:
            yield from (line.split("\t") for line in path.read_text().splitlines())
        return
    place, _, parts = chosen.part.partition("/")
    names = None if chosen.ops is None else chosen.ops.split(",")
    dtypes = chosen.dtypes.split(",")
    found = judged(names, dtypes, count=_counts(chosen.samples, dtypes),
                   part=(int(place), int(parts)), run=chosen.run, target=chosen.target,
                   optimize=chosen.optimize)  # fmt: skip
    for sample in found:
        row = sample.row()
        if chosen.verbose and sample.outcome != "agree":
            print(row, flush=True)
        yield row.split("\t")


def _write(page: Path, chosen: argparse.Namespace, rows: Sequence[Sequence[str]]) -> None:
    counts = Counter(row[3] for row in rows)
    share = f"{100 * counts['agree'] / max(len(rows), 1):.1f} %"
    numbers = [len(rows), *(counts[kind] for kind in OUTCOMES), share]
    part = "" if chosen.part == "0/1" else f", part {chosen.part}"
    how = f"`--target {chosen.target} --optimize {chosen.optimize}`, {chosen.run}{part}"
    worst_last = sorted(rows, key=lambda row: -OUTCOMES.index(row[3]))
    others = {f"{row[0]} {row[1]}": row[3] for row in worst_last if row[3] != "agree"}
    write_rows(page, "opinfo", how, numbers, others)


def main() -> int:
    """Judges what the command line names; the status says if something is wrong or crashes."""
    chosen = _arguments()
    warnings.filterwarnings("ignore")
    rows = list(_rows(chosen))
    counts = Counter(row[3] for row in rows)
    if chosen.results is not None:
        chosen.results.write_text("".join("\t".join(row) + "\n" for row in rows))
    if chosen.write is not None:
        _write(chosen.write, chosen, rows)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    return int(any(counts[each] for each in ("wrong", "crash", "fails")))


if __name__ == "__main__":
    sys.exit(main())
