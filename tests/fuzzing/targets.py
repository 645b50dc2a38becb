"""Targets that read mutants, and the outcomes that count as defects."""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import resource
import signal
import tempfile
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from tests.dialects.test_ttkernel import kernel_with
from tests.frontends.test_stablehlo_against_xla import CASES
from tests.fuzzing.caches import cache_mutant, use_cache
from tests.fuzzing.edits import edited
from tests.fuzzing.mutation import mutated_bytes, mutated_record, mutated_text
from tests.fuzzing.structure import mutated_structure
from tests.fuzzing.threads import threads_mutant, threads_program, use_threads
from tests.op_cases.cases import cases, function_of
from tests.random_programs.checking import module_of
from tests.random_programs.recipes import RECIPES
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.dialects.operations.verification import verify_module
from ttcodegen.dialects.ttkernel.table import kernel_ops
from ttcodegen.flatbuffer.decoding import encode
from ttcodegen.flatbuffer.reader import read_ttm, read_ttnn
from ttcodegen.flatbuffer.schema import load_schema
from ttcodegen.flatbuffer.system import write_ttsys
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.frontends import module_for_passes
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.parsing import parse_module
from ttcodegen.rt import API
from ttcodegen.runtime.executable import TensorInfo
from ttcodegen.runtime.program_inputs import read_values
from ttcodegen.systems.cards import default_system
from ttcodegen.transforms.module_text import module_text
from ttcodegen.transforms.pass_runner import PassRunner
from ttcodegen.transforms.registry import passes_of

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 10
"""Processor time after which a mutant counts as a hang; the originals take less than a second."""
NUMBERS = (0, -1, 2**31 - 1, 2**31, 2**32, 2**63 - 1)
"""Numbers at the edges of what words hold."""
MEMORY = 2 << 30
"""Limit of the additional memory of a mutant in bytes: to exceed it is a defect."""


class HangError(BaseException):
    """A mutant took too long."""


class Wrong(Exception):
    """A mutant was accepted that contradicts itself."""


@contextlib.contextmanager
def bounded() -> Generator[None]:
    """Bounds the time and the memory of what runs in it."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise HangError

    with Path("/proc/self/statm").open() as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    previous = signal.signal(signal.SIGVTALRM, stop)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, limits[1]))
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGVTALRM, previous)


# Modules


@cache
def module_seeds() -> tuple[str, ...]:
    """Small modules of all stages: one for each op, and what the tests of passes read, part by
    part."""
    found: list[str] = []
    for name in RECIPES:
        few = list(islice(cases(name), 2))
        if few:
            found.append(module_of([function_of(name, few)]))
    for path in sorted((ROOT / "tests" / "lit").rglob("*.mlir")):
        for part in path.read_text("utf-8").split("// -----"):
            lines = [line for line in part.splitlines() if not line.lstrip().startswith("//")]
            text = "\n".join(lines).strip() + "\n"
            if "func" in text and len(text) < 6000:
                found.append(text)
    return tuple(found)


def module_mutant(numbers: random.Random) -> str:
    if numbers.random() < 0.3:
        return edited(numbers.choice(module_seeds()), numbers)
    if numbers.random() < 0.5:
        return mutated_structure(numbers.choice(module_seeds()), numbers)
    return mutated_text(numbers.choice(module_seeds()), numbers.choice(module_seeds()), numbers)


@cache
def calls_seeds() -> tuple[str, ...]:
    """Modules of TTNN, with layouts and without: what some of the seeds are lowered to."""
    found: list[str] = []
    steps = ("inline", "ttir-element-type-normalization", "convert-ttir-to-ttnn", "ttnn-layout")
    for text in module_seeds()[::4]:
        with contextlib.suppress(CompileError):
            module = module_for_passes(Source("seed.mlir", text))
            runner = PassRunner(load_dialects())
            for step in steps:
                runner.run(module, passes_of(step))
                if step.endswith("ttnn") or step.endswith("layout"):
                    found.append(module_text(module))
    return tuple(found)


@cache
def frontend_seeds() -> tuple[str, ...]:
    """Modules of StableHLO, TOSA and linalg."""
    path = ROOT / "tests" / "lit" / "passes" / "convert-tosa-to-ttir.mlir"
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("//")]
    tosa = [f"func.func {part}" for part in "\n".join(lines).split("func.func ")[1:]]
    linalg = [text for text in module_seeds() if "linalg." in text]
    return (*(case.text for case in CASES), *tosa, *linalg * 10)


@cache
def device_seeds() -> tuple[str, ...]:
    """Kernels with each op of TTKernel, programs of TTMetal, and what says of TTCore how devices
    are used."""
    found = [module_text(kernel_with(definition)[0]) for definition in kernel_ops().values()]
    for text in (FUSED, module_seeds()[0], module_seeds()[7]):
        module = module_for_passes(Source("seed.mlir", text))
        with contextlib.suppress(CompileError):
            PassRunner(load_dialects()).run(module, passes_of("ttir-to-ttmetal-pipeline"))
            found += [module_text(module)] * 20
    words = ("ttmetal.", "ttcore.device", "ttcore.metal_layout", "ttcore.load_cached")
    found += [text for text in module_seeds() if any(word in text for word in words)] * 4
    return tuple(found)


def device_mutant(numbers: random.Random) -> str:
    """A module with changed ops, or one with other numbers, which need not read."""
    seed = numbers.choice(device_seeds())
    if numbers.random() < 0.3:
        return edited(seed, numbers)
    if numbers.random() < 0.4:
        return mutated_structure(seed, numbers)
    if numbers.random() < 0.5:
        return mutated_text(seed, numbers.choice(device_seeds()), numbers)
    places = list(re.finditer(r"(?<![\w.%#@])-?\d+(?![\w.])", seed))
    for place in reversed(numbers.sample(places, min(len(places), numbers.choice((1, 1, 2))))):
        seed = f"{seed[: place.start()]}{numbers.choice(NUMBERS)}{seed[place.end() :]}"
    return seed


def use_device_module(text: str | bytes) -> None:
    """Reads, verifies and prints a module of kernels or programs, and emits what it is lowered
    to."""
    assert isinstance(text, str)
    read_module(text)
    for steps in ("convert-ttkernel-to-emitc", "convert-ttmetal-to-emitc"):
        with contextlib.suppress(CompileError):
            module = module_for_passes(Source("mutant.mlir", text))
            verify_module(module)
            PassRunner(load_dialects()).run(module, passes_of(steps))


def calls_mutant(numbers: random.Random) -> str:
    if numbers.random() < 0.5:
        return edited(numbers.choice(calls_seeds()), numbers)
    return mutated_structure(numbers.choice(calls_seeds()), numbers)


def frontend_mutant(numbers: random.Random) -> str:
    text, other = numbers.choice(frontend_seeds()), numbers.choice(frontend_seeds())
    if numbers.random() < 0.6:
        return edited(text, numbers)
    return mutated_text(text, other, numbers)


def read_module(text: str) -> None:
    """Reads, verifies, prints and compiles a module as the tools do."""
    source = Source("mutant.mlir", text)
    with contextlib.suppress(CompileError):
        module = parse_module(source)
        verify_module(module)
        printed = module_text(module)
        again = module_text(parse_module(Source("printed.mlir", printed)))
        # Attributes of a dialect that is not registered are text, which printing indents.
        if printed.split() != again.split():
            raise Wrong("what is printed reads back as another module")
        if any(op.name.partition(".")[0] in ("ttmetal", "emitc") for op in module.walk()):
            return
        for target in ("ttnn", "ttmetal"):
            with contextlib.suppress(CompileError):
                compile_module(source, CompileOptions("mutant", target))


# Flatbuffers

SMALL = """func.func @main(%x: tensor<4x32xbf16> {ttir.name = "x"},
    %w: tensor<32x8xbf16> {ttcore.argument_type = #ttcore.argument_type<parameter>})
    -> (tensor<4x8xbf16>, tensor<4xi32>) {
  %0 = "ttir.matmul"(%x, %w) : (tensor<4x32xbf16>, tensor<32x8xbf16>) -> tensor<4x8xbf16>
  %1 = "ttir.constant"() <{value = dense<1.5> : tensor<1x8xbf16>}> : () -> tensor<1x8xbf16>
  %2 = "ttir.add"(%0, %1) : (tensor<4x8xbf16>, tensor<1x8xbf16>) -> tensor<4x8xbf16>
  %3 = "ttir.softmax"(%2) <{dimension = 1 : si32}> : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
  %4 = "ttir.argmax"(%3) <{dim_arg = [1 : i32], keep_dim = false}>
      : (tensor<4x8xbf16>) -> tensor<4xi32>
  return %3, %4 : tensor<4x8xbf16>, tensor<4xi32>
}
"""
FUSED = """func.func @main(%x: tensor<32x32xf32>, %y: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = "ttir.add"(%x, %y) : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %1 = "ttir.exp"(%0) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  return %1 : tensor<32x32xf32>
}
"""


@cache
def flatbuffer_seed(kind: str) -> bytes:
    """An undamaged file."""
    if kind == "ttsys":
        return write_ttsys(default_system("wormhole_b0"))
    target, text = {"ttnn": ("ttnn", SMALL), "ttm": ("ttmetal", FUSED)}[kind]
    seed = 0 if kind == "ttnn" else None
    options = CompileOptions("small", target, golden_seed=seed)
    return compile_module(Source("small.mlir", text), options).flatbuffer


@cache
def _decoded(kind: str) -> Any:
    data = flatbuffer_seed(kind)
    return read_ttnn(data) if kind == "ttnn" else read_ttm(data)


def flatbuffer_mutant(kind: str, numbers: random.Random) -> bytes:
    """A file with damaged bytes, or one that decodes and makes no sense."""
    if kind != "ttsys" and numbers.random() < 0.7:
        record = mutated_record(_decoded(kind), numbers)
        with contextlib.suppress(Exception):  # Not everything can be written.
            return encode(load_schema(f"{kind}.fbs"), record)
    return mutated_bytes(flatbuffer_seed(kind), numbers)


def use_flatbuffer(kind: str, data: bytes) -> None:
    """Reads, checks and runs a file as ttcodegen-rt does."""
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        path = Path(folder, f"mutant.{kind}")
        path.write_bytes(data)
        args = {"binary": path, "--log-file": os.devnull}
        codes = {API.Read(args={**args, "--section": "all"})()[0]}
        if kind != "ttsys":
            codes.add(API.Check(args=args)()[0])
            codes.add(API.Run(args={**args, "--memory": True})()[0])
        if not codes <= {0, 1, 4}:
            raise Wrong(f"ttcodegen-rt ended with {sorted(codes)}")


def _memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


# Arrays


@cache
def array_seed() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.arange(12, dtype=np.float32).reshape(3, 4))
    return stream.getvalue()


def use_array(data: bytes) -> None:
    """Reads values for an input from a .npy file."""
    tensor = TensorInfo("x", "input", (3, 4), "float32", np.dtype(np.float32), "float32")
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        path = Path(folder, "x.npy")
        path.write_bytes(data)
        with contextlib.suppress(CompileError):
            values = read_values(path, tensor)
            if values.shape != (3, 4) or values.dtype != np.float32:
                raise Wrong("values of another shape or type were taken")


@dataclass(frozen=True)
class Target:
    """Something that reads files."""

    name: str
    share: int
    """Mutants for this target among a hundred."""
    mutant: Callable[[random.Random], str | bytes]
    use: Callable[[str | bytes], None]


def _flatbuffer(kind: str, share: int) -> Target:
    def mutant(numbers: random.Random) -> bytes:
        return flatbuffer_mutant(kind, numbers)

    return Target(kind, share, mutant, _of_bytes(lambda data: use_flatbuffer(kind, data)))


def _use_module(text: str | bytes) -> None:
    assert isinstance(text, str)
    read_module(text)


def _of_bytes(use: Callable[[bytes], None]) -> Callable[[str | bytes], None]:
    def use_bytes(data: str | bytes) -> None:
        assert isinstance(data, bytes)
        use(data)

    return use_bytes


TARGETS = (
    Target("mlir", 25, module_mutant, _use_module),
    Target("calls", 15, calls_mutant, _use_module),
    Target("device", 5, device_mutant, use_device_module),
    Target("frontends", 15, frontend_mutant, _use_module),
    _flatbuffer("ttnn", 10),
    _flatbuffer("ttm", 10),
    _flatbuffer("ttsys", 10),
    Target("npy", 10, lambda numbers: mutated_bytes(array_seed(), numbers), _of_bytes(use_array)),
    Target("cache", 5, cache_mutant, _of_bytes(use_cache)),
)
THREADS = Target("threads", 1, threads_mutant, _of_bytes(use_threads))
"""A target of the long mode alone: its program has to be built."""


@dataclass(frozen=True)
class Finding:
    """A mutant that ended as none should."""

    target: str
    seed: int
    mutant: str | bytes
    what: str


def with_threads() -> tuple[Target, ...]:
    """All targets, those of the long mode as well."""
    threads_program()
    return (*TARGETS, THREADS)


def mutant_of(seed: int, targets: Sequence[Target] = TARGETS) -> tuple[Target, str | bytes]:
    """The mutant of that number for one of the targets, always the same one."""
    numbers = random.Random(seed)
    (target,) = numbers.choices(targets, [target.share for target in targets])
    return target, target.mutant(numbers)


def tried(seed: int, targets: Sequence[Target] = TARGETS) -> Finding | None:
    """Gives the mutant of that number to its target; what went wrong, None if nothing did."""
    target, mutant = mutant_of(seed, targets)
    try:
        with (
            bounded(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            target.use(mutant)
    except HangError:
        return Finding(target.name, seed, mutant, f"it took more than {SECONDS} s")
    except Exception as error:
        import traceback

        return Finding(target.name, seed, mutant, "".join(traceback.format_exception(error)))
    return None
