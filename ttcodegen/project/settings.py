"""Project settings, and the compilation of a file for callers from Python."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, get_args

from ttcodegen.compilation import CompiledModule, CompileOptions, no_block_floats, no_optimizer
from ttcodegen.dialects.ttcore.device import ONE_CHIP, MeshShape, require_possible
from ttcodegen.emission.description import Fabric, ProjectKind
from ttcodegen.emission.interface_description import name_of_file
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
    """Optimizer level: 0, 1 or 2."""
    weights: str
    """bfp8_b or bfp4_b: block float type of matmul weights."""
    activations: str
    """bfp8_b: block float type of activations between calls that take it."""
    overrides: str | os.PathLike[str]
    """File of optimizer overrides."""
    write_overrides: str | os.PathLike[str]
    """File that receives the optimizer's decisions."""
    validate: bool
    """True to ask the library about all calls, and to search again around those it refuses."""
    python: str
    """Pythons with the package ttnn, for `validate`; by default $TTCODEGEN_TTNN_PYTHON."""
    trace: bool
    """True to capture a trace of device commands and replay it in later calls."""
    mesh: str | tuple[int, int]
    """Mesh rows and columns, for a model that names no mesh."""
    hosts: str | tuple[int, int]
    """Rows and columns of the hosts of the mesh."""
    fabric: Fabric
    """Topology of the mesh's links: linear, ring or torus."""
    parallel: str
    """Shardings for a model without any: auto, or for example data=0,tensor=1."""
    stages: str | int
    """Number of pipeline stages, or the last ops of all stages but the last."""
    micro_batches: int
    """Number of micro-batches that pass through the stages in turn."""
    kind: ProjectKind
    """Kind of the project: so, exe, both, runner or sources."""
    tt_metal: str
    """The release of tt-metal."""
    f16: str
    """Compute type of f16 of the source, bfloat16 or float32."""
    keep_edits: KeepEdits
    """Policy for edited files: merge or fail."""
    embed_goldens: bool
    """True to add golden results of each source op on random inputs to the flatbuffer."""
    explain: bool
    """Print the decision for each call and the estimated cost of the next best alternative."""
    format: bool
    """True to format the C++."""
    dump_ir: str | os.PathLike[str]
    """Folder that receives the module after each pass."""


_DECISIONS = ("explain", "overrides", "write_overrides", "validate")
"""Options that set or show decisions of the optimizer."""

Spelling = Callable[..., str]
"""Spells an option, with a value if given, in the caller's syntax."""


def _keyword(name: str, value: object = None) -> str:
    return name if value is None else f"{name}={value!r}"


Check = bool | Literal["edges"]
"""Check of a project, if any; `edges` adds edge-case inputs."""

_CHOICES: Mapping[str, tuple[object, ...]] = {
    "target": ("ttnn", "ttmetal"),
    "arch": ("", *ARCHITECTURES),
    "check": (False, True, "edges"),
    "optimize": (None, 0, 1, 2),
    "weights": ("", "bfp8_b", "bfp4_b"),
    "activations": ("", "bfp8_b"),
    "fabric": (None, *get_args(Fabric)),
    "kind": (None, *get_args(ProjectKind)),
    "tt_metal": RELEASES,
    "f16": ("bfloat16", "float32"),
    "keep_edits": get_args(KeepEdits),
}
"""Valid values of settings that have a few."""


def _sizes(text: str | tuple[int, int]) -> MeshShape:
    """Parses rows and columns of a mesh; raises CompileError if no such mesh is possible."""
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
    optimize: int | None = None
    weights: str = ""
    activations: str = ""
    overrides: str | os.PathLike[str] | None = None
    write_overrides: str | os.PathLike[str] | None = None
    validate: bool = False
    python: str = ""
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
    seed: int | None = None
    keep_edits: KeepEdits = "merge"
    embed_goldens: bool = False
    explain: bool = False
    format: bool = True
    dump_ir: str | os.PathLike[str] | None = None

    @property
    def project_kind(self) -> ProjectKind:
        """Kind of the project; pipeline stages default to an executable."""
        return self.kind or ("exe" if self.stages else "both")

    def compile_options(self, name: str) -> CompileOptions:
        """Compiler options for a module of that name.

        Raises:
            CompileError: if a value is impossible, or the overrides cannot be read.
        """
        kind = self.project_kind
        return CompileOptions(
            name,
            self.target,
            self.arch,
            self.tt_metal,
            system=self._system(),
            optimize=self.optimize or 0,
            weights=self.weights,
            activations=self.activations,
            overrides=self._overrides(),
            kind="both" if kind == "so" and self.check else kind,
            golden_seed=self.seed or 0 if self.embed_goldens else None,
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
        from ttcodegen.flatbuffer.system import chosen_system

        return chosen_system(self.arch or None, self.system_desc)

    def _overrides(self) -> str:
        if self.overrides is None:
            return ""
        try:
            return Path(self.overrides).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CompileError(f"the overrides cannot be read: {error}") from error

    def compiled(self, source: Source, name: str) -> CompiledModule:
        """Compiles a module with these options; prints warnings and explanations.

        Raises:
            CompileError: if it is invalid or not supported, or cannot be checked on this machine.
        """
        diagnostics = Diagnostics()
        dump = None if self.dump_ir is None else Path(self.dump_ir)
        runner = PassRunner(load_dialects(), dump=dump)
        compiled = self.compile(source, name, runner, diagnostics)
        diagnostics.write(sys.stderr, source)
        if self.check:
            from ttcodegen.project.running import refuse_too_large

            refuse_too_large(compiled)
        if self.explain:
            print(printable(compiled.explanation), end="")
        self.save_decisions(compiled.decisions)
        return compiled

    def compile(
        self, source: Source, name: str, runner: PassRunner, diagnostics: Diagnostics
    ) -> CompiledModule:
        """Compiles a module with these options, and has the library judge it on request.

        Raises:
            CompileError: if it is invalid or not supported, or there is no library that accepts it.
        """
        options = self.compile_options(name)
        if not self.validate:
            return compile_stages(source, options, runner, diagnostics)
        from ttcodegen.judging.validated_compilation import compile_validated

        return compile_validated(source, options, self.python or None, runner, diagnostics)

    def refuse_contradictions(self) -> None:
        """Checks that each option has a valid value and an effect.

        Raises:
            CompileError: if one has none.
        """
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                named = ", ".join(str(each) for each in choices if each not in ("", None))
                raise CompileError(f"{name} cannot be {value!r}", remedy=f"it can be {named}")
        if (message := self.contradiction(_keyword)) is not None:
            raise CompileError(message)

    def contradiction(self, spelled: Spelling) -> str | None:
        """Message on the first option without effect in combination, None if all have one."""
        given = [name for name in _DECISIONS if getattr(self, name)]
        explains = (self.parallel or self.stages) and given == ["explain"]
        if self.seed is not None and self.seed < 0:
            return f"{spelled('seed')} is a number of 0 or more"
        if self.target == "ttmetal" and ((given and not explains) or self.optimize):
            name = given[0] if given else "optimize"
            return no_optimizer(spelled(name), spelled("target", "ttmetal"))
        if self.target == "ttmetal" and self.activations:
            return no_block_floats(spelled("activations"), spelled("target", "ttmetal"))
        if self.overrides and self.optimize == 0:
            return (
                f"{spelled('overrides')} decides at level 1 or 2, not at {spelled('optimize', 0)}"
            )
        if self.validate and not (self.optimize or self.overrides):
            return f"{spelled('validate')} needs {spelled('optimize', 1)} or 2"
        if given and not (self.optimize or self.overrides or self.parallel or explains):
            levels, parallel = spelled("optimize", 1), spelled("parallel")
            return f"{spelled(given[0])} needs {levels} or 2, or {parallel}"
        if self.validate and self.stages:
            stages = spelled("stages")
            return f"{spelled('validate')} judges programs of one device: leave out {stages}"
        if self.python and not self.validate:
            return f"{spelled('python')} needs {spelled('validate')}"
        if self.embed_goldens and self.target == "ttmetal":
            return (
                f"{spelled('embed_goldens')} is for .ttnn files, which "
                f"{spelled('target', 'ttmetal')} does not write"
            )
        if self.check and self.kind == "sources":
            return f"{spelled('check')} needs an executable: leave out {spelled('kind', 'sources')}"
        if self.micro_batches != 1 and not self.stages:
            return f"{spelled('micro_batches')} needs {spelled('stages')}"
        if self.seed is not None and not (self.check or self.embed_goldens):
            return f"{spelled('seed')} needs {spelled('check')} or {spelled('embed_goldens')}"
        return None

    def save_decisions(self, decisions: str) -> None:
        """Writes the optimizer's decisions to the requested file.

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
        CompileError: if edits conflict with it, or it cannot be written.
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
    """Compiles a model to a project, and checks it on request.

    Returns:
        The project's folder.

    Raises:
        CompileError: if the model is invalid or not supported, edits conflict, the project cannot
            be written, or an output of the check differs.
    """
    options.refuse_contradictions()
    refuse_unrelated_folder(out, force=options.force, keep_edits=options.keep_edits)
    source = Source.read(str(path))
    compiled = options.compiled(source, name_of_file(path.name))
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
                seed=options.seed or 0,
                edges=options.check == "edges",
            )
            if reasons := [reason for check in checks for reason in check.reasons]:
                raise CompileError.from_diagnostics([Diagnostic(reason) for reason in reasons])
    return out
