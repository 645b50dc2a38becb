"""Runs of a project with the real library on the vendor's simulator.

The shared object of the project is built with tt-metal in place of the CPU backend. Each program
runs in a process of its own, since a simulator ends the process at what it does not simulate.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.judging.simulator_output import lacking, last_words
from ttcodegen.project.building import build_with_tt_metal
from ttcodegen.project.manifest import read_manifest
from ttcodegen.project.processes import simulator_environment
from ttcodegen.project.running import TIMEOUT
from ttcodegen.runtime.executable import open_flatbuffer

_RUN = "import sys; from ttcodegen.cli.rt import main; sys.exit(main(sys.argv[1:]))"
_DIFFERS = 4
"""Exit status of `ttcodegen-rt run` after a failed comparison."""


def device_project(path: Path) -> Path | None:
    """Folder of the device program project at `path`, its folder or its flatbuffer, else None."""
    folder = path.parent if path.name == "model.ttm" else path
    manifest = read_manifest(folder) if folder.is_dir() else None
    if manifest is None or manifest.get("target") != "ttmetal":
        return None
    return folder if (folder / "model.ttm").is_file() else None


def simulated_verdicts(
    folder: Path, simulator: Path, package: Path | None, timeout: float = TIMEOUT
) -> list[dict[str, Any]]:
    """Verdicts on a project's programs on a simulator, compared with the flatbuffer.

    Args:
        folder: the project.
        simulator: shared object of the simulator.
        package: folder of the Python package `ttnn` with kernels and compiler; by default those of
            `TT_METAL_HOME`.
        timeout: time limit of a program in seconds.

    Returns:
        For each program what `validate` reports.

    Raises:
        BuildError: if the project does not build with tt-metal.
    """
    name = str((read_manifest(folder) or {}).get("module"))
    library = build_with_tt_metal(folder, name) / f"lib{name}.so"
    flatbuffer = open_flatbuffer(folder / "model.ttm")
    names = [program.name for program in flatbuffer.programs]
    flatbuffer.close()
    environment = {**os.environ, **simulator_environment(simulator)}
    if package is not None:
        environment["TT_METAL_RUNTIME_ROOT"] = str(package)
    verdicts: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        environment.setdefault("TT_METAL_CACHE", str(Path(scratch, "kernels")))
        results = Path(scratch, "results.json")
        for index, name in enumerate(names):
            results.unlink(missing_ok=True)
            command = [sys.executable, "-c", _RUN, "run", str(library), "--quiet"]
            command += ["--program-index", str(index), "--result-file", str(results)]
            try:
                done = subprocess.run(
                    command,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    check=False,
                    timeout=timeout,
                    env=environment,
                )
            except subprocess.TimeoutExpired:
                refused = [f"the program does not end within {timeout:g} s"]
                verdicts.append({**_verdict(name), "refused": refused})
                continue
            said = done.stdout + done.stderr
            found = json.loads(results.read_text("utf-8")) if results.is_file() else None
            verdicts.append(verdict_of(name, done.returncode, said, found))
    return verdicts


def _verdict(name: str) -> dict[str, Any]:
    return {
        "program": name,
        "accepted": 0,
        "compared": 0,
        "refused": [],
        "different": [],
        "not_judged": [],
    }


def verdict_of(
    name: str, status: int, said: str, results: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Verdict on a program.

    Args:
        name: the program.
        status: exit status of `ttcodegen-rt run`.
        said: its output and the simulator's.
        results: its result file, None if there is none.
    """
    verdict = _verdict(name)
    files = [] if results is None else results["results"]
    programs = [each for one in files for each in one.get("programs") or ()]
    if status not in (0, _DIFFERS) or not programs:
        words = last_words(said)
        if words is not None and (lacks := lacking(words)) is not None:
            verdict["not_judged"] = [f"'{name}', which the simulator cannot run ({lacks})"]
            return verdict
        errors = [each["error"] for each in files if each.get("error")]
        lines = [line for line in said.splitlines() if line.strip()]
        why = words or next(iter(errors), None) or (lines[-1] if lines else "it says nothing")
        verdict["refused"] = [f"the program ends with status {status}: {why}"]
        return verdict
    outputs = [output for program in programs for output in program["outputs"]]
    verdict["accepted"], verdict["compared"] = 1, len(outputs)
    verdict["different"] = [
        f"output '{output['name']}': {check['reason']}"
        for output in outputs
        for check in output["checks"]
        if not check["passed"]
    ]
    return verdict


def package_of(python: str) -> Path:
    """Folder of the package `ttnn` of a Python.

    Raises:
        CompileError: if it has none.
    """
    query = (
        "import importlib.util; "
        "print(importlib.util.find_spec('ttnn').submodule_search_locations[0])"
    )
    done = subprocess.run([python, "-c", query], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CompileError(f"'{python}' has no package 'ttnn'")
    return Path(done.stdout.strip())
