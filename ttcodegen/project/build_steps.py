"""Runs the steps of a build: their output goes to a log, their progress to the user."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ttcodegen.foundation.messages import Progress
from ttcodegen.project.toolchain import BuildError, Toolchain

_COUNTER = re.compile(rb"\[(\d+)/(\d+)\] ")


def run_step(command: Sequence[str], log: Path) -> int:
    """Runs a command, whose output is added to the log; returns its exit status.

    Raises:
        BuildError: if it cannot be started.
    """
    with log.open("a") as output:
        output.write(" ".join(command) + "\n")
        output.flush()
        try:
            done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
        except OSError as error:
            raise BuildError(f"cannot run {command[0]}: {error.strerror}") from None
    return done.returncode


def run_ninja(
    toolchain: Toolchain, build: Path, log: Path, title: str, *, targets: Sequence[str] = ()
) -> int:
    """Builds targets, or all of them; returns the exit status of Ninja.

    Args:
        toolchain: with the Ninja to use.
        build: the folder that was configured.
        log: the file that the output is added to.
        title: says what is built, where progress is shown.
        targets: their names.

    Raises:
        BuildError: if Ninja cannot be started.
    """
    command = [toolchain.ninja, "-C", str(build), f"-j{os.cpu_count() or 1}", *targets]
    progress = Progress(title)
    with log.open("ab") as output:
        output.write((" ".join(command) + "\n").encode())
        output.flush()
        try:
            process = subprocess.Popen(
                command,
                env={**os.environ, "NINJA_STATUS": "[%f/%t] "},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            raise BuildError(f"cannot run {command[0]}: {error.strerror}") from None
        with process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    output.write(line)
                    counter = _COUNTER.match(line)
                    # Looking for new files is no step of the build.
                    if counter and counter[1] != b"0":
                        progress.update(int(counter[1]), int(counter[2]))
            except BaseException:
                process.terminate()
                raise
            finally:
                progress.end()
    return process.returncode
