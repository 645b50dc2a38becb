"""Runs of the C++ on the CPU backend: limits that are checked before, inputs, outputs, failures."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ttcodegen.cost.resources import memory_use
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.emission.description import FunctionDescription
from ttcodegen.flatbuffer.program import Binary
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.numerics.lowered import read_flatbuffer
from ttcodegen.project.reference import FunctionInputs
from ttcodegen.project.toolchain import find_mpirun

if TYPE_CHECKING:
    from ttcodegen.compilation import CompiledModule

_MOST_LINES = 12
"""The most lines of what a program says that are shown."""

TIMEOUT = 1800.0
"""Seconds after which a run of the C++ counts as one that hangs."""

Executed = tuple[Mapping[str, Mapping[str, np.ndarray]], str | None]
"""The outputs of the C++ by function and name, and why it failed if it did."""


# Limits of the machine that emulates the devices.


def refuse_too_large(compiled: CompiledModule) -> None:
    """Raises CompileError if the tensors of all devices take more memory than the machine has."""
    mesh = compiled.description.mesh
    needed, present = _least_memory(compiled), _memory_of_machine()
    if present is not None and needed > present:
        on_mesh = f" on a mesh of {'x'.join(map(str, mesh))}" if math.prod(mesh) > 1 else ""
        raise CompileError(
            f"the check{on_mesh} takes at least {_gibibytes(needed)} of memory, and this machine "
            f"has {_gibibytes(present)}",
            remedy="leave the check out, or check the model with smaller shapes or on a smaller "
            "mesh",
        )


def _least_memory(compiled: CompiledModule) -> int:
    """Bytes that a check takes at least: the tensors of all emulated devices when they are most,
    beside the arguments and the results in numpy."""
    chips = math.prod(compiled.description.mesh)
    binary = read_flatbuffer(compiled.flatbuffer)
    programs = binary.programs if isinstance(binary, Binary) else binary.functions
    peak = max(
        (
            sum(step.allocated.values())
            for program in programs
            for step in memory_use(program, _emulated_bytes).steps
        ),
        default=0,
    )
    arrays = max(
        (
            sum(
                math.prod(tensor.shape) * _element_bytes(tensor.data_type.numpy)
                for tensor in (*function.arguments, *function.outputs)
            )
            for function in compiled.description.functions
        ),
        default=0,
    )
    return chips * peak + arrays


def _emulated_bytes(placement: TensorPlacement) -> int:
    """Bytes of the elements: the CPU backend pads no tensor of a call of the library."""
    return math.prod(placement.shape) * _element_bytes(placement.data_type.numpy)


def _element_bytes(numpy_name: str) -> int:
    return 2 if numpy_name == "bfloat16" else np.dtype(numpy_name).itemsize


def _memory_of_machine() -> int | None:
    """Bytes of memory and swap, or what the container may take of them; None if unknown."""
    try:
        pairs = (line.split()[:2] for line in Path("/proc/meminfo").read_text("ascii").splitlines())
        sizes = {name: int(kibibytes) << 10 for name, kibibytes in pairs}
    except (OSError, ValueError):
        return None
    total = sizes.get("MemTotal:", 0) + sizes.get("SwapTotal:", 0)
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            total = min(total, int(Path(limit).read_text("ascii")))
    return total or None


def _gibibytes(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"


# Runs of a built program.


def run_executable(
    executable: Path,
    runs: Sequence[FunctionInputs],
    folder: Path,
    timeout: float,
    launcher: Sequence[str] = (),
) -> Executed:
    """Runs the functions of the numpy runs in the executable, on the same inputs.

    Args:
        executable: the built program.
        runs: the functions and their inputs.
        folder: where files are put for as long as the run takes.
        timeout: seconds that it may take.
        launcher: the command that starts it as several processes.

    Returns:
        The outputs by function and name, as far as there are any; and why the program failed,
        None if it did not.
    """
    with tempfile.TemporaryDirectory(prefix="check-", dir=folder) as scratch:
        inputs, results = Path(scratch, "inputs"), Path(scratch, "outputs")
        for run in runs:
            arrays = zip(run.function.arguments, run.inputs, strict=True)
            _write_inputs(inputs / run.function.cpp_name, {a.field: v for a, v in arrays})
        command = [*launcher, str(executable), "--outputs", str(results)]
        if any(run.inputs for run in runs):
            # The program refuses a folder that has nothing for any function.
            command += ["--inputs", str(inputs)]
        command += [f"--function={run.function.cpp_name}" for run in runs]
        failure = _run(command, timeout)
        outputs = {
            run.function.name: _read_outputs(results / run.function.cpp_name, run.function)
            for run in runs
        }
    return outputs, failure


def _write_inputs(folder: Path, arrays: Mapping[str, np.ndarray]) -> None:
    folder.mkdir(parents=True)
    for name, array in arrays.items():
        # numpy stores bfloat16 as two-byte records, which the program reads as what they are.
        np.save(folder / f"{name}.npy", array, allow_pickle=False)


def _read_outputs(folder: Path, function: FunctionDescription) -> dict[str, np.ndarray]:
    files = {output.field: folder / f"{output.field}.npy" for output in function.outputs}
    return {
        field: np.load(file, allow_pickle=False) for field, file in files.items() if file.is_file()
    }


def _run(command: list[str], timeout: float) -> str | None:
    """Runs the program; why it failed, in words for a user, or None."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _END_WITH_PARENT, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=timeout,
            env={**os.environ, **MPI_ENVIRONMENT},
        )
    except subprocess.TimeoutExpired:
        return f"the program did not end within {timeout:g} s"
    except OSError as error:
        return f"the program did not start: {error.strerror}"
    if done.returncode == _NOT_STARTED:
        return done.stderr.strip()
    if done.returncode == 0:
        return None
    lines = [line.rstrip() for line in done.stderr.splitlines() if line.strip()]
    # The emulated device reports which processors are concerned, and where their kernels are.
    output = "\n".join(lines[:_MOST_LINES]).removeprefix("error: ") or "it said nothing"
    if -done.returncode == signal.SIGKILL and not lines:
        return "the program was killed: the machine may have had too little memory for it"
    if done.returncode < 0:
        return f"the program ended with signal {_signal_name(-done.returncode)}: {output}"
    return f"the program ended with status {done.returncode}: {output}"


def mpi_launcher(ranks: int) -> tuple[str, ...]:
    """The command that starts a program as so many processes of this machine; nothing for one."""
    mpirun = find_mpirun()
    return () if ranks == 1 or mpirun is None else (mpirun, "-np", str(ranks))


MPI_ENVIRONMENT = {
    # Checks run in containers too, and on machines with fewer cores than ranks.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
}
"""Variables that let Open MPI start processes of a check."""


_NOT_STARTED = 127
_END_WITH_PARENT = f"""
import ctypes, os, sys
try:
    ctypes.CDLL(None).prctl(1, {int(signal.SIGTERM)})
except AttributeError:
    pass
try:
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
except OSError:
    pass
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError as error:
    print(f"the program did not start: {{error.strerror}}", file=sys.stderr)
    sys.exit({_NOT_STARTED})
"""
"""Python that becomes the program which its arguments name, after PR_SET_PDEATHSIG: the kernel ends
the program when its parent ends, however that happens, and, if memory runs out, the program before
the parent, which reports it. It is no `preexec_fn`: forking while other threads compute in numpy
waits for ever for the locks of its BLAS."""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
