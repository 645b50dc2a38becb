"""Processes of programs: limits, MPI launchers, simulators, and why a run failed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ttcodegen.judging.simulator_output import last_words
from ttcodegen.project.toolchain import find_mpirun

_MAX_LINES = 12
"""Limit on the output lines of a program that are shown."""


def simulator_environment(simulator: Path) -> dict[str, str]:
    """Environment variables that run the library on a simulator.

    Kernels are compiled in `TT_METAL_RUNTIME_ROOT`, or `TT_METAL_HOME`.
    """
    return {
        "TT_METAL_SIMULATOR": str(simulator.absolute()),
        "TT_METAL_SLOW_DISPATCH_MODE": "1",
        "TT_METAL_DISABLE_SFPLOADMACRO": "1",
        "TT_METAL_DISABLE_XIP_DUMP": "1",
        "TT_METAL_LOGGER_LEVEL": "fatal",
    }


def run_program(
    command: Sequence[str], timeout: float, environment: Mapping[str, str]
) -> str | None:
    """Runs a program, or several processes of it; returns the reason of its failure, or None.

    Args:
        command: the program and its arguments.
        timeout: time limit in seconds.
        environment: additional environment variables.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _END_WITH_PARENT, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=timeout,
            env={**os.environ, **MPI_ENVIRONMENT, **environment},
        )
    except subprocess.TimeoutExpired:
        return f"the program did not end within {timeout:g} s"
    except OSError as error:
        return f"the program did not start: {error.strerror}"
    if done.returncode == _NOT_STARTED:
        return done.stderr.strip()
    if done.returncode == 0:
        return None
    lines = [line.rstrip() for line in _without_banners(done.stderr) if line.strip()]
    # The emulated device reports the processors concerned and the paths of their kernels.
    output = "\n".join(lines[:_MAX_LINES]).removeprefix("error: ")
    # A simulator reports on standard output why it ended the process.
    output = output or last_words(done.stdout) or _signal_of_status(done.returncode)
    if -done.returncode == signal.SIGKILL and not lines:
        return "the program was killed: the machine may have had too little memory for it"
    if done.returncode < 0:
        return f"the program ended with signal {_signal_name(-done.returncode)}: {output}"
    return f"the program ended with status {done.returncode}: {output}"


_KILLED = re.compile(r"process rank (\d+) .*exited on signal (\d+)")


def _signal_of_status(status: int) -> str:
    """Says which signal ended a process by the status of its launcher or shell, 128 above it."""
    if status > 128:
        return f"a process was ended by {_signal_name(status - 128)}"
    return "it said nothing"


def _without_banners(output: str) -> list[str]:
    """Returns the program's own lines, and one for a process that was killed.

    MPI reports that in a banner between lines of dashes.
    """
    lines: list[str] = []
    is_banner = False
    for line in output.splitlines():
        if re.fullmatch(r"-{10,}", line):
            is_banner = not is_banner
        elif not is_banner:
            lines.append(line)
        elif (killed := _KILLED.search(line)) is not None:
            rank, number = killed.groups()
            lines.append(f"process {rank} was ended by {_signal_name(int(number))}")
    return lines


def mpi_launcher(ranks: int) -> tuple[str, ...]:
    """Command that starts a program as `ranks` local processes; empty for one."""
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
"""Environment variables for Open MPI on machines with few cores and in containers."""


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
"""Python launcher that replaces itself by its arguments after PR_SET_PDEATHSIG.

The kernel ends the program whenever its parent ends, and kills the program before the parent when
memory runs out, so that the parent can report it. A `preexec_fn` would deadlock: forking while
other threads use numpy inherits locks of its BLAS.
"""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
