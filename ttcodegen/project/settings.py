"""Project settings, and the compilation of a file for callers from Python."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, get_args

from ttcodegen.compilation import CompiledModule, CompileOptions
from ttcodegen.dialects.ttcore.device import ONE_CHIP, MeshShape, require_possible
from ttcodegen.emission.description import Fabric, ProjectKind
from ttcodegen.foundation.diagnostics import CompileError, Diagnostic, Diagnostics, Source
from ttcodegen.foundation.messages import printable
from ttcodegen.ops.dialects import load_dialects
from ttcodegen.project.sources import project_files
from ttcodegen.project.staging import locked_project
from ttcodegen.project.writer import KeepEdits, refuse_unrelated_folder, write_project
from ttcodegen.staged_compilation import compile_stages
from ttcodegen.systems.description import ARCHITECTURES
from ttcodegen.systems.releases import DEFAULT_RELEASE, RELEASES
from ttcodegen.transforms.pass_runner import PassRunner

if TYPE_CHECKING:
    from ttcodegen.systems.description import SystemDescription


# Settings of a project that the command line and the functions of Python have in common.


class ProjectSettings(TypedDict, total=False):
    """Options of the command line, as keyword arguments of Python; see `ttcodegen --help`."""

    optimize: int
    """The level of the optimizer, 0, 1 or 2."""
    weights: str
    """bfp8_b or bfp4_b: store the weights of matrix products as block floats."""
    overrides: str | os.PathLike[str]
    """A file of decisions for the optimizer."""
    write_overrides: str | os.PathLike[str]
    """The file that the decisions of the optimizer are written to."""
    trace: bool
    """Capture what the device does in a call, and replay it in later ones."""
    mesh: str | tuple[int, int]
    """Rows and columns of chips, for a model that names no mesh."""
    hosts: str | tuple[int, int]
    """Rows and columns of the hosts that have the mesh."""
    fabric: Fabric
    """The links of a mesh: linear, ring or torus."""
    parallel: str
    """Shardings of a model that says none: auto, or as in data=0,tensor=1."""
    stages: str | int
    """Stages of a pipeline, or the ops that all but the last end after."""
    micro_batches: int
    """Parts of the batch that go through the stages one after the other."""
    kind: ProjectKind
    """Kind of the project: so, exe, both, runner or sources."""
    tt_metal: str
    """The release of tt-metal."""
    f16: str
    """Compute type of f16 of the source, bfloat16 or float32."""
    keep_edits: KeepEdits
    """merge or fail, if files in the folder were edited."""
    embed_goldens: bool
    """Add to the flatbuffer results of each op of the source on random inputs."""
    explain: bool
    """Print the decision for each call and the estimated cost of the next best alternative."""
    format: bool
    """False: do not format the C++."""
    dump_ir: str | os.PathLike[str]
    """The folder that the module is written to after each pass."""


Check = bool | Literal["edges"]
"""The check of a project, if any; `edges`: on inputs from the edges of arguments, too."""

_CHOICES: Mapping[str, tuple[object, ...]] = {
    "target": ("ttnn", "ttmetal"),
    "arch": ("", *ARCHITECTURES),
    "check": (False, True, "edges"),
    "optimize": (0, 1, 2),
    "weights": ("", "bfp8_b", "bfp4_b"),
    "fabric": (None, *get_args(Fabric)),
    "kind": (None, *get_args(ProjectKind)),
    "tt_metal": RELEASES,
    "f16": ("bfloat16", "float32"),
    "keep_edits": get_args(KeepEdits),
}
"""The values of settings that have a few."""


def _sizes(text: str | tuple[int, int]) -> MeshShape:
    """Rows and columns of a mesh or its hosts; raises CompileError if there can be no such mesh."""
    sizes = text
    if isinstance(sizes, str):
        found = re.fullmatch(r"(\d{1,6})[x,](\d{1,6})", sizes)
        if found is None:
            raise CompileError(f"'{sizes}' is no shape of a mesh", remedy="2x4 for instance")
        sizes = int(found[1]), int(found[2])
    require_possible(sizes)
    return sizes


@dataclass(frozen=True)
class ProjectOptions:
    """Options of a project."""

    target: str = "ttnn"
    arch: str = ""
    system_desc: str | None = None
    build: bool = False
    check: Check = False
    force: bool = False
    optimize: int = 0
    weights: str = ""
    overrides: str | os.PathLike[str] | None = None
    write_overrides: str | os.PathLike[str] | None = None
    trace: bool = False
    mesh: str | tuple[int, int] = ONE_CHIP
    hosts: str | tuple[int, int] = ONE_CHIP
    fabric: Fabric | None = None
    parallel: str = ""
    stages: str | int = ""
    micro_batches: int = 1
    kind: ProjectKind | None = None
    tt_metal: str = DEFAULT_RELEASE
    f16: str = "bfloat16"
    seed: int = 0
    keep_edits: KeepEdits = "merge"
    embed_goldens: bool = False
    explain: bool = False
    format: bool = True
    dump_ir: str | os.PathLike[str] | None = None

    @property
    def project_kind(self) -> ProjectKind:
        """The kind of the project; stages of a pipeline are an executable."""
        return self.kind or ("exe" if self.stages else "both")

    def compile_options(self, name: str) -> CompileOptions:
        """The options of the compiler for a module of that name.

        Raises:
            CompileError: if a value is impossible, or the file of overrides cannot be read.
        """
        kind = self.project_kind
        return CompileOptions(
            name,
            self.target,
            self.arch,
            self.tt_metal,
            system=self._system(),
            optimize=self.optimize,
            weights=self.weights,
            overrides=self._overrides(),
            kind="both" if kind == "so" and self.check else kind,
            golden_seed=self.seed if self.embed_goldens else None,
            mesh=_sizes(self.mesh),
            hosts=_sizes(self.hosts),
            fabric=self.fabric,
            parallel=self.parallel,
            stages=str(self.stages),
            micro_batches=self.micro_batches,
            trace=self.trace,
            f16=self.f16,
        )

    def _system(self) -> SystemDescription | None:
        if self.system_desc is None:
            return None
        from ttcodegen.flatbuffer.system import load_system

        return load_system(self.system_desc)

    def _overrides(self) -> str:
        if self.overrides is None:
            return ""
        try:
            return Path(self.overrides).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CompileError(f"the overrides cannot be read: {error}") from error

    def compiled(self, source: Source, name: str) -> CompiledModule:
        """A module compiled with these options; warnings and what is to be explained are printed.

        Raises:
            CompileError: if it is wrong or not supported, or cannot be checked on this machine.
        """
        diagnostics = Diagnostics()
        dump = None if self.dump_ir is None else Path(self.dump_ir)
        runner = PassRunner(load_dialects(), dump=dump)
        compiled = compile_stages(source, self.compile_options(name), runner, diagnostics)
        diagnostics.write(sys.stderr, source)
        if self.check:
            from ttcodegen.project.running import refuse_too_large

            refuse_too_large(compiled)
        if self.explain:
            print(printable(compiled.explanation), end="")
        self.save_decisions(compiled.decisions)
        return compiled

    def refuse_contradictions(self) -> None:
        """Makes sure that each option has a value that it can have, and an effect.

        Raises:
            CompileError: if one has none.
        """
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                named = ", ".join(str(each) for each in choices if each not in ("", None))
                raise CompileError(f"{name} cannot be {value!r}", remedy=f"it can be {named}")
        decisions = ("explain", "overrides", "write_overrides")
        asked = [name for name in decisions if getattr(self, name)]
        explains = self.parallel and asked == ["explain"]
        if self.target == "ttmetal" and ((asked and not explains) or self.optimize):
            name = asked[0] if asked else "optimize"
            raise CompileError(
                f"{name} is for calls of the ttnn library: target='ttmetal' has no optimizer yet"
            )
        if asked and not (self.optimize or self.overrides or self.parallel):
            raise CompileError(
                f"{asked[0]} needs optimize=1 or 2, or parallel: nothing is decided without"
            )
        if self.embed_goldens and self.target == "ttmetal":
            raise CompileError(
                "embed_goldens is for .ttnn files, which target='ttmetal' does not write"
            )
        if self.check and self.kind == "sources":
            raise CompileError("check needs an executable: leave out kind='sources'")

    def save_decisions(self, decisions: str) -> None:
        """Writes the decisions of the optimizer to the file that is wanted for them.

        Raises:
            CompileError: if it cannot be written.
        """
        if self.write_overrides is None:
            return
        try:
            Path(self.write_overrides).write_text(decisions, "utf-8")
        except OSError as error:
            place = os.fspath(self.write_overrides)
            raise CompileError(f"cannot write '{place}': {error.strerror}") from None


# Compiles a file in MLIR to a project, for callers from Python.


def write_compiled(compiled: CompiledModule, out: Path, options: ProjectOptions) -> None:
    """Writes the project of a compiled module.

    Raises:
        CompileError: if edits are in conflict with it, or it cannot be written.
    """
    conflicts = write_project(
        compiled.description,
        out,
        project_files(compiled, formatted=options.format),
        force=options.force,
        keep_edits=options.keep_edits,
    )
    if conflicts:
        raise CompileError.from_diagnostics(
            [Diagnostic(f"{out / conflict.path} {conflict.reason}") for conflict in conflicts]
        )


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
    source = Source.read(str(path))
    compiled = options.compiled(source, path.name.partition(".")[0])
    with locked_project(out):
        write_compiled(compiled, out, options)
        if options.check:
            from ttcodegen.project.checking import check_project
            from ttcodegen.project.toolchain import find_toolchain

            checks = check_project(
                source,
                compiled,
                out,
                find_toolchain(),
                kind=options.project_kind,
                seed=options.seed,
                edges=options.check == "edges",
            )
            if reasons := [reason for check in checks for reason in check.reasons]:
                raise CompileError.from_diagnostics([Diagnostic(reason) for reason in reasons])
    return out
