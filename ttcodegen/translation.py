"""Translations between modules and other formats: C++ and flatbuffers.

Each translation takes the content of a file and returns files by name; text can also go to the
standard output.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.foundation.whole_files import write_whole
from ttcodegen.systems.description import (
    DEFAULT_ARCHITECTURE,
    SystemDescription,
    differences,
)
from ttcodegen.systems.releases import DEFAULT_RELEASE, release_named
from ttcodegen.version import __version__

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp

    from ttcodegen.dialects.ttmetal.programs import Kernel, Program
    from ttcodegen.flatbuffer.writer import Origin

_default_system: ContextVar[SystemDescription | None] = ContextVar("default system", default=None)
"""System for modules that declare none."""


@contextmanager
def for_system(system: SystemDescription | None) -> Generator[None]:
    """Sets the system for modules that declare none; modules for other systems are refused."""
    token = _default_system.set(system)
    try:
        yield
    finally:
        _default_system.reset(token)


@dataclass(frozen=True)
class Translated:
    """Result of a translation: files by path, and all of them in one."""

    files: Mapping[str, str | bytes]
    whole: str | bytes


@dataclass(frozen=True)
class Translation:
    """A translation on the command line."""

    name: str
    description: str
    reads_text: bool
    """True if the input is MLIR, False if it is a flatbuffer."""
    translate: Callable[[Source | bytes], Translated]


def mlir_to_cpp(source: Source | bytes) -> Translated:
    """Translates an EmitC module to C++, with one file per `emitc.file`.

    The single-file form compiles by itself: it contains each included file of the module once, in
    module order.

    Raises:
        CompileError: if the text is not an EmitC module.
    """
    from ttcodegen.emitc.printer import print_module

    module = _module(source)
    _wrap_in_file(module)
    files = print_module(module)
    return Translated(files, _amalgamated(files))


def ttnn_to_flatbuffer(source: Source | bytes) -> Translated:
    """Translates a TTNN module with layouts to a `.ttnn` file.

    Raises:
        CompileError: if the text is not such a module.
    """
    from ttcodegen.conversions.ttnn_to_emitc import complete_layouts
    from ttcodegen.flatbuffer.writer import write_ttnn
    from ttcodegen.ops.dialects import load_dialects

    module = _module(source)
    complete_layouts(load_dialects(), module)
    data = write_ttnn(module, _origin(module, source))
    return Translated({"model.ttnn": data}, data)


def with_golden_map(translated: Translated, folder: Path) -> Translated:
    """Adds the golden values in a folder to a translated `.ttnn` file.

    Raises:
        CompileError: if a value cannot be read, or has no matching tensor.
    """
    from ttcodegen.numerics.golden_values import embed_golden_map, read_golden_map

    assert isinstance(translated.whole, bytes)
    data = embed_golden_map(translated.whole, read_golden_map(folder))
    return Translated({"model.ttnn": data}, data)


def _origin(module: ModuleOp, source: Source | bytes) -> Origin:
    """Returns the origin that a module records, or one for this text."""
    from ttcodegen.flatbuffer.modules import origin_of
    from ttcodegen.flatbuffer.writer import Origin

    assert isinstance(source, Source)
    text_hash = source.digest
    return origin_of(module, Origin(text_hash, DEFAULT_ARCHITECTURE, DEFAULT_RELEASE))


def ttmetal_to_flatbuffer(source: Source | bytes) -> Translated:
    """Translates a module of device programs to a `.ttm` file.

    Raises:
        CompileError: if the text is not such a module.
    """
    from ttcodegen.emission.convert_to_emitc import kernel_texts
    from ttcodegen.emission.manifest_entries import exchanged_over_links
    from ttcodegen.flatbuffer.writer import write_ttm

    module = _module(source)
    origin = _write_kernels(module, source)
    data = write_ttm(module, origin, kernel_texts(module), exchanged_over_links(module))
    return Translated({"model.ttm": data}, data)


def ttkernel_to_cpp(source: Source | bytes) -> Translated:
    """Translates all kernels of a module to C++.

    These are all kernels of the launched programs, including reader and writer kernels; without
    launches, the functions of `ttkernel` ops. In the single-file form each kernel follows a comment
    with its file name.

    Raises:
        CompileError: if there are no kernels, or an op has no C++.
    """
    from ttcodegen.compat.ttmetal_programs import DISPATCH
    from ttcodegen.dialects.ttmetal.programs import RUN_PROGRAM

    module = _module(source)
    runs = (RUN_PROGRAM, DISPATCH)
    launches = any(op.name in runs for op in module.walk())
    files = _kernels_of_programs(module, source) if launches else _standalone_kernels(module)
    if not files:
        raise CompileError(
            "the module has no kernels",
            remedy="lower it with ttcodegen-opt --ttir-to-ttmetal-pipeline",
        )
    whole = "\n".join(f"// {path}\n{text}" for path, text in files.items())
    return Translated(files, whole)


def _write_kernels(module: ModuleOp, source: Source | bytes) -> Origin:
    """Converts the kernels of a module of device programs to C++ files; returns the module's
    origin."""
    from ttcodegen.emission.convert_to_emitc import ConvertTTKernelToEmitC
    from ttcodegen.ops.dialects import load_dialects

    origin = _origin(module, source)
    pass_ = ConvertTTKernelToEmitC("model", origin.input_hash, origin.release)
    pass_.apply(load_dialects(), module)
    return origin


def _kernels_of_programs(module: ModuleOp, source: Source | bytes) -> dict[str, str]:
    from ttcodegen.emitc.printer import print_file
    from ttcodegen.emitc.statements import FileOp

    _write_kernels(module, source)
    files = [op for op in module.ops if isinstance(op, FileOp)]
    return {file.id.data.removeprefix("kernels/"): print_file(file) for file in files}


def _standalone_kernels(module: ModuleOp) -> dict[str, str]:
    """Returns the C++ of kernels in a module without launches, with arguments named after
    values."""
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp

    from ttcodegen.conversions.ttkernel_to_emitc.functions import write_kernel
    from ttcodegen.dialects.operations.functions import KERNEL_THREAD
    from ttcodegen.emitc.builder import open_file
    from ttcodegen.emitc.printer import print_module
    from ttcodegen.emitc.spelling import file_stem

    release = release_named(DEFAULT_RELEASE)
    _infer_threads(module)
    holder = ModuleOp([])
    for function in module.ops:
        if not isinstance(function, FuncOp) or KERNEL_THREAD not in function.attributes:
            continue
        kernel, program = _undeclared_kernel(function)
        path = f"{file_stem(kernel.name, 'kernel')}.cpp"
        title = f"{kernel.name}: generated by ttcodegen {__version__} for tt-metal {release.name}"
        write_kernel(open_file(holder, path), function, kernel, program, title, release)
    return print_module(holder)


def _infer_threads(module: ModuleOp) -> None:
    """Infers missing thread types of kernels from their ops; data movement if several types fit.

    Raises:
        CompileError: at the first op that leaves no thread type.
    """
    from xdsl.dialects.func import FuncOp

    from ttcodegen.dialects.operations.functions import KERNEL_THREAD
    from ttcodegen.dialects.operations.verification import verify_module
    from ttcodegen.dialects.ttkernel.attributes import CBType, ThreadType, ThreadTypeAttr
    from ttcodegen.dialects.ttkernel.operation import TTKernelOp

    inferred = False
    for function in module.ops:
        if not isinstance(function, FuncOp) or KERNEL_THREAD in function.attributes:
            continue
        ops = [op for op in function.walk() if isinstance(op, TTKernelOp)]
        takes_buffers = any(isinstance(type_, CBType) for type_ in function.function_type.inputs)
        if not ops and not takes_buffers:
            continue
        threads = [ThreadType.NOC, ThreadType.COMPUTE, ThreadType.ETHERNET]
        for op in ops:
            threads = [thread for thread in threads if thread in op.definition.threads]
            if not threads:
                raise CompileError(
                    f"no thread runs all ops of the kernel @{function.sym_name.data}: "
                    f"'{op.name}' is of another kind than those before it",
                    op,
                    remedy=f"give the function the attribute '{KERNEL_THREAD}'",
                )
        function.attributes[KERNEL_THREAD] = ThreadTypeAttr(threads[0])
        inferred = True
    if inferred:
        verify_module(module)


def _undeclared_kernel(function: FuncOp) -> tuple[Kernel, Program]:
    """Derives kernel attributes, including arguments, from the ops of a kernel."""
    from xdsl.dialects.arith import ConstantOp
    from xdsl.dialects.builtin import IntegerAttr, StringAttr

    from ttcodegen.dialects.ttkernel.attributes import ThreadType
    from ttcodegen.dialects.ttkernel.operation import kernel_thread
    from ttcodegen.dialects.ttmetal.programs import (
        NAMED_ARGUMENT,
        RUN_TIME_ARGUMENT,
        CoreArea,
        Kernel,
        NamedConstant,
        Processor,
        Program,
        RuntimeArgument,
    )
    from ttcodegen.naming.sources import name_in_text

    constants: dict[str, NamedConstant] = {}
    passed: dict[int, str] = {}
    for op in function.walk():
        name = op.properties.get("arg_name", op.attributes.get("arg_name"))
        if op.name == NAMED_ARGUMENT and isinstance(name, StringAttr):
            constants[name.data] = NamedConstant(name.data, 0)
        if op.name == RUN_TIME_ARGUMENT:
            owner = op.operands[0].owner
            value = owner.value if isinstance(owner, ConstantOp) else None
            if not isinstance(value, IntegerAttr):
                raise CompileError("the index of a run-time argument is no constant", op)
            index = value.value.data
            passed.setdefault(index, name_in_text(op.results[0], f"argument{index}"))
    core = CoreArea(0, 0)
    name = function.sym_name.data
    arguments = tuple(
        RuntimeArgument(passed.get(index, f"argument{index}"), 0)
        for index in range(max(passed, default=-1) + 1)
    )
    is_compute = kernel_thread(function) is ThreadType.COMPUTE
    purpose = "A compute kernel." if is_compute else "A kernel that moves data."
    kernel = Kernel(
        name,
        Processor.COMPUTE if is_compute else Processor.READER,
        purpose,
        core,
        name,
        constants=tuple(constants.values()),
        arguments=arguments,
    )
    program = Program(name, purpose, 0, core, (), (kernel,))
    return kernel, program


def flatbuffer_to_mlir(source: Source | bytes) -> Translated:
    """Translates a `.ttnn` file to a module with locations.

    Raises:
        CompileError: if the data are not a `.ttnn` file.
    """
    from ttcodegen.flatbuffer.modules import module_of
    from ttcodegen.flatbuffer.reader import read_ttnn
    from ttcodegen.transforms.module_text import module_text

    assert isinstance(source, bytes)
    text = module_text(module_of(read_ttnn(source)), locations=True)
    return Translated({"model.mlir": text}, text)


TRANSLATIONS = (
    Translation("mlir-to-cpp", "a module of EmitC to C++", True, mlir_to_cpp),
    Translation(
        "ttkernel-to-cpp", "the kernels of a module of TTKernel to C++", True, ttkernel_to_cpp
    ),
    Translation("ttnn-to-flatbuffer", "a module of TTNN to a .ttnn file", True, ttnn_to_flatbuffer),
    Translation(
        "ttmetal-to-flatbuffer", "a module of TTMetal to a .ttm file", True, ttmetal_to_flatbuffer
    ),
    Translation(
        "flatbuffer-to-mlir", "a .ttnn file to a module of TTNN", False, flatbuffer_to_mlir
    ),
)
"""All translations, in --help order."""


def _module(source: Source | bytes) -> ModuleOp:
    from ttcodegen.dialects.operations.verification import verify_module
    from ttcodegen.frontends import module_for_passes
    from ttcodegen.parsing.structure import refuse_unregistered

    assert isinstance(source, Source)
    module = module_for_passes(source)
    refuse_unregistered(module)
    verify_module(module)
    _set_default_system(module)
    return module


def _set_default_system(module: ModuleOp) -> None:
    """Sets the default system of a module that declares none.

    Raises:
        CompileError: if the module declares a different system, for which its layouts were chosen.
    """
    from ttcodegen.dialects.ttcore.dialect import set_system, system_of

    wanted = _default_system.get()
    if wanted is None:
        return
    own = system_of(module)
    if own is None:
        set_system(module, wanted)
    elif found := differences(own, wanted):
        raise CompileError(
            f"the module is for another system: {found[0]}",
            module,
            remedy="lower it for that system (ttcodegen-opt --machine), or leave the option out",
        )


def _wrap_in_file(module: ModuleOp) -> None:
    """Wraps an EmitC module without files, as other tools print it, in one file.

    `func` functions become EmitC functions.
    """
    from xdsl.dialects import func
    from xdsl.ir import Block

    from ttcodegen.emitc.statements import FileOp, FuncOp, ReturnOp

    content = list(module.ops)
    if any(isinstance(op, FileOp) for op in content) or not content:
        return
    block = Block()
    for op in content:
        op.detach()
        if not isinstance(op, func.FuncOp):
            block.add_op(op)
            continue
        region = op.detach_region(op.body)
        for inner in region.walk():
            if isinstance(inner, func.ReturnOp):
                if len(inner.operands) > 1:
                    raise CompileError("a function of C++ returns one value", inner)
                parent = inner.parent_block()
                assert parent is not None
                parent.insert_op_before(ReturnOp(*inner.operands), inner)
                parent.erase_op(inner)
                break
        made = FuncOp(op.sym_name.data, op.function_type, region, arg_attrs=op.arg_attrs)
        made.location = op.location
        block.add_op(made)
    module.body.block.add_op(FileOp("model.cpp", block))


def _amalgamated(files: Mapping[str, str]) -> str:
    """Amalgamates all files into one: headers first, without includes between them."""
    if len(files) == 1:
        return next(iter(files.values()))
    # Includes are relative to the project, or to the including file.
    names = sorted({*files, *(path.rpartition("/")[2] for path in files)})
    own = "|".join(re.escape(name) for name in names)
    line = rf'#pragma once|#include ["<](?:{own})[">]'
    unneeded = re.compile(rf"^(?:{line})\n(?:\n(?=\n))?", re.MULTILINE)
    ordered = sorted(files, key=lambda path: not path.endswith(".hpp"))
    return "\n".join(unneeded.sub("", files[path]) for path in ordered)


def write_output(translated: Translated, path: str) -> None:
    """Writes the result of a translation to standard output (`-`), a file, or a folder.

    Folders exist or end in `/`, and get one file per translated file. File writes are atomic.

    Raises:
        CompileError: if a file cannot be written.
    """
    if path == "-":
        _write_to_stdout(translated.whole)
        return
    target = Path(path)
    try:
        if path.endswith("/") or target.is_dir():
            for name, content in translated.files.items():
                write_whole(target / name, content)
        else:
            write_whole(target, translated.whole)
    except OSError as error:
        raise CompileError(f"cannot write '{path}': {error.strerror or error}") from None


def _write_to_stdout(content: str | bytes) -> None:
    if isinstance(content, str):
        sys.stdout.write(content)
        return
    if sys.stdout.isatty():
        raise CompileError(
            "a flatbuffer is binary and cannot go to a terminal",
            remedy="name a file with -o, or pipe it on",
        )
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
