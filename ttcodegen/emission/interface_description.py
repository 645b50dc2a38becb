"""Interface of a project: module name, entry functions, constants, refused hosts and links."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ttcodegen.dialects.core.datatypes import constant_array
from ttcodegen.dialects.ttcore.device import ONE_CHIP, MeshShape
from ttcodegen.dialects.ttnn.placement import placement_of
from ttcodegen.emission.description import (
    KINDS_WITH_EXECUTABLE,
    DataFile,
    Fabric,
    FunctionDescription,
    ProjectKind,
    TensorDescription,
    TensorKind,
    output_tolerance,
)
from ttcodegen.emitc.spelling import file_stem
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.naming.modules import PRODUCT_WEIGHTS, qualified
from ttcodegen.ops.movement.layout import converted

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from ttcodegen.conversions.host_functions.cpp_interface import ConstantFile
    from ttcodegen.conversions.host_functions.interface import Entry, InterfaceTensor


def data_file(constant: ConstantFile) -> DataFile:
    """Describes the data file of a constant, in the data type that the module takes."""
    array = constant_array(constant.value)
    if not constant.data_type.is_float and array.dtype.name != constant.data_type.numpy:
        array = converted(array, constant.data_type.numpy)
    return DataFile(constant.name, array)


def describe_function(
    entry: Entry,
    tuned: Collection[SSAValue],
    argument_dtypes: Sequence[str],
    result_dtypes: Sequence[str],
) -> FunctionDescription:
    """Describes an entry function.

    Args:
        entry: the function.
        tuned: weights whose data type is a constant of src/tuning.hpp.
        argument_dtypes: numpy dtypes of its arguments in the source.
        result_dtypes: numpy dtypes of its results in the source.
    """
    return FunctionDescription(
        entry.name,
        entry.cpp_name,
        tuple(_tensor(p, d, tuned) for p, d in zip(entry.arguments, argument_dtypes, strict=True)),
        tuple(_tensor(p, d) for p, d in zip(entry.results, result_dtypes, strict=True)),
        has_constants=False,
    )


def _tensor(
    tensor: InterfaceTensor, source_dtype: str, tuned: Collection[SSAValue] = ()
) -> TensorDescription:
    placement = placement_of(tensor.value)
    return TensorDescription(
        tensor.name,
        tensor.field,
        TensorKind(tensor.kind),
        tensor.shape,
        placement.data_type,
        placement.layout,
        placement.buffer_type,
        source_dtype,
        memory_layout=placement.memory_layout,
        shards=placement.shards,
        divided=tensor.divided,
        path=tensor.path,
        tolerance=output_tolerance(tensor.value, source_dtype) if tensor.kind == "output" else None,
        tuned_type=qualified(PRODUCT_WEIGHTS) if tensor.value in tuned else "",
    )


def refuse_fabric(mesh: MeshShape, fabric: Fabric | None, target: str, kind: ProjectKind) -> None:
    """Raises CompileError if a fabric was chosen that the project would not configure."""
    if fabric is None:
        return
    if mesh == ONE_CHIP:
        raise CompileError(
            f"a {fabric} fabric needs several devices, and the module is for one",
            remedy="leave --fabric out, or give --mesh-shape",
        )
    if kind == "sources":
        raise CompileError(
            "a project of sources opens no devices",
            remedy="leave --fabric out: the program that opens the mesh configures its fabric",
        )
    if target == "ttmetal" and fabric == "torus":
        raise CompileError(
            "the kernels between chips of --target ttmetal send along lines and rings, not over a "
            "torus of two dimensions",
            remedy="give --fabric ring",
        )


def refuse_hosts(mesh: MeshShape, hosts: MeshShape, target: str, kind: ProjectKind) -> None:
    """Raises CompileError if the mesh does not divide among the hosts, or nothing runs on them."""
    if hosts == ONE_CHIP:
        return
    named = f"{hosts[0]}x{hosts[1]}"
    if mesh == ONE_CHIP:
        raise CompileError(
            f"{named} hosts have a mesh of chips in common, and the program is for one chip",
            remedy="give the mesh with --mesh-shape, the chips of all hosts",
        )
    if any(devices % count for devices, count in zip(mesh, hosts, strict=True)):
        raise CompileError(
            f"a mesh of {mesh[0]}x{mesh[1]} chips does not divide among {named} hosts",
            remedy="the rows of chips are divided among the rows of hosts, the columns among the "
            "columns",
        )
    if target == "ttmetal":
        raise CompileError(
            "programs of --target ttmetal run on one host",
            remedy="leave --target out: calls of the library run on several",
        )
    if kind not in KINDS_WITH_EXECUTABLE:
        raise CompileError(
            f"the executable runs on {named} hosts, which --kind {kind} leaves out",
            remedy="give --kind exe or both",
        )


# CMake reserves these target names (policy CMP0037), and the project has targets for the
# executable, the objects and the support sources. `-ldl` and the like would link a target of that
# name.
_RESERVED_TARGETS = frozenset(
    """
    all all_build clean depend edit_cache experimental continuous nightly help install list
    install_strip install_local package package_source preinstall rebuild_cache run_tests test
    test_memcheck zero_check codegen support dl pthread
    """.split()
)

# Names that the C library declares in the global namespace, where the module's namespace is as
# well: functions, types and variables without an underscore that could be a model's name.
_TAKEN_BY_C = frozenset(
    """
    abort abs accept access acos acosh alarm asin asinh atan atan2 atanh atexit basename bind brk
    calloc canonicalize cbrt ceil chdir chmod clock clone close confstr connect copysign cos cosh
    creat crypt daemon daylight difftime div drem dup environ erf erfc exit exp exp10 exp2 expm1
    fabs fcntl fdim ffs fileno finite floor fma fmax fmaximum fmin fminimum fmod fork free frexp
    fromfp fsync gamma getline gettext hypot ilogb index initstate j0 j1 jn kill labs ldexp ldiv
    lgamma link listen lockf log log10 log1p log2 logb lrint lround lseek malloc mblen memcpy
    memset mkdir mktemp mktime mmap modf nan nanosleep nearbyint nice open optarg opterr optind
    pause perror pipe poll popen pow printf profil putenv puts qsort raise rand random read
    readahead readlink realloc realpath recv reject remainder remove remquo rename revoke rewind
    rindex rint rmdir round roundeven scalb scalbn scanf seed48 select send setenv setstate
    shutdown sigaction signal significand sigstack sin sincos sinh sleep socket splice sqrt srand
    srandom stat strcat strchr strcmp strlen swab symlink sync syscall sysconf sysinfo system tan
    tanh tee tempnam tgamma time timespec timeval timezone tm tmpfile tmpnam tolower totalorder
    toupper trunc truncate ulong umask unlink uint ushort usleep utimes valloc vfork wait write y0
    y1 yn
    """.split()
)


# The other files in src/, and other names that a module must not have.
_OTHER_SOURCES = re.compile(
    r"main|generate|capi|entry_points|programs(?:_\d+)?|tuning|cpu_functions|ttcodegen"
)


def module_name(text: str, taken: Iterable[str] = ()) -> str:
    """Returns the C++ and CMake name of a module for a text such as the stem of a file."""
    name = file_stem(text, "model")
    reserved = (
        name.lower() in _RESERVED_TARGETS
        or name in _TAKEN_BY_C
        or _OTHER_SOURCES.fullmatch(name.lower()) is not None
        or name in ("support", *taken)
    )
    return f"{name}_model" if reserved else name


LONGEST_NAME = 30
"""Maximum length of a default module name."""


def default_module_name(text: str) -> str:
    """Returns a short name for a module, from the stem of its file.

    A long name is cut to its part after the last `__`, and to its leading words."""
    words = file_stem(text.rpartition("__")[2] if len(text) > LONGEST_NAME else text).split("_")
    while len(words) > 1 and len("_".join(words)) > LONGEST_NAME:
        words.pop()
    return "_".join(words)[:LONGEST_NAME]


def name_of_file(path: str) -> str:
    """Returns the module name for the file that it is read from; - is standard input."""
    stem = "" if path == "-" else Path(path).name.partition(".")[0]
    return default_module_name(stem or "model")
