"""Compiles a file in MLIR to a project, for callers from Python."""

from __future__ import annotations

import sys
from pathlib import Path

from ttcodegen.compilation import compile_module
from ttcodegen.foundation.diagnostics import CompileError, Diagnostic, Diagnostics, Source
from ttcodegen.project.rendering import project_files
from ttcodegen.project.settings import ProjectOptions
from ttcodegen.project.writer import refuse_unrelated_folder, write_project


def compile_file(path: Path, out: Path, options: ProjectOptions) -> Path:
    """Writes the project of a model, and checks it on request.

    Returns:
        The project's folder.

    Raises:
        CompileError: if the model is wrong or not supported, edits are in conflict with it, the
            project cannot be written, or an output of the check differs.
    """
    options.refuse_contradictions()
    refuse_unrelated_folder(out, force=options.force, keep_edits=options.keep_edits)
    source, diagnostics = Source.read(str(path)), Diagnostics()
    compiled = compile_module(
        source,
        options.compile_options(path.name.partition(".")[0]),
        diagnostics=diagnostics,
    )
    diagnostics.write(sys.stderr, source)
    options.save_decisions(compiled.decisions)
    conflicts = write_project(
        compiled.description,
        out,
        project_files(compiled, formatted=True),
        force=options.force,
        keep_edits=options.keep_edits,
    )
    if conflicts:
        raise CompileError.from_diagnostics(
            [Diagnostic(f"{out / conflict.path} {conflict.reason}") for conflict in conflicts]
        )
    if options.check:
        from ttcodegen.project.checking import check_project
        from ttcodegen.project.toolchain import find_toolchain

        kind = options.kind or "both"
        checks = check_project(
            source, compiled, out, find_toolchain(), kind=kind, seed=options.seed
        )
        if reasons := [reason for check in checks for reason in check.reasons]:
            raise CompileError.from_diagnostics([Diagnostic(reason) for reason in reasons])
    return out
