"""`read`: sections of a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.rt.commands.arguments import SECTIONS
from ttcodegen.rt.commands.command import Command, FileResult, blamed_on, json_text

if TYPE_CHECKING:
    from ttcodegen.flatbuffer.program import Binary, DeviceProgram
    from ttcodegen.runtime.c_api import LibraryDescription
    from ttcodegen.runtime.executable import Executable
    from ttcodegen.systems.description import SystemDescription

ENDINGS = (".ttnn", ".ttm", ".so", ".ttsys")


class Read(Command):
    """Shows sections of flatbuffers, shared objects and system descriptions.

    No code of a file is run: a shared object is described by its embedded manifest, completed from
    its project's flatbuffer.
    """

    name: ClassVar[str] = "read"

    def execute(self) -> list[FileResult]:
        """Returns a result per file, whose content are the sections by name."""
        from ttcodegen.runtime.executable import find_files

        paths = find_files(self.arguments["binary"], ENDINGS)
        return [self._read(path, several=len(paths) > 1) for path in paths]

    def _read(self, path: Path, several: bool) -> FileResult:
        chosen: str = self.arguments["section"]
        names = SECTIONS[1:] if chosen == "all" else (chosen,)
        kind = path.suffix.lstrip(".")
        try:
            sections = _sections(path)
            found: dict[str, Any] = {}
            for name in names:
                if name in sections:
                    found[name] = sections[name]()
                elif chosen != "all":
                    raise CompileError(f"a .{kind} file has no section '{name}'")
        except CompileError as error:
            return self.failed(path, kind, error)
        for name, content in found.items():
            text = content if isinstance(content, str) else json_text(content)
            heading = [str(path)] * several + [name] * (len(names) > 1)
            if heading:
                self.logger.info(f"# {': '.join(heading)}")
            self.logger.info(text.rstrip())
            if self.arguments["save_artifacts"]:
                ending = {"mlir": "mlir", "cpp": "cpp"}.get(name, "json")
                self.artifacts.write(
                    f"read/{self.artifact_folder(path)}/{name}.{ending}", text.rstrip() + "\n"
                )
        return FileResult(str(path), kind, content={"sections": found})


Sections = Mapping[str, Callable[[], Any]]


def _sections(path: Path) -> Sections:
    """Sections of a file, computed on demand."""
    match path.suffix:
        case ".ttsys":
            return _system_sections(path)
        case ".so":
            return _library_sections(path)
        case _:
            return _flatbuffer_sections(path)


def _system_sections(path: Path) -> Sections:
    from ttcodegen.flatbuffer.system import MAJOR, MINOR, read_ttsys_file

    system = read_ttsys_file(path)
    return {
        "version": lambda: {"file": f"{MAJOR}.{MINOR}"},
        "system_desc": lambda: _system_json(system),
    }


def _system_json(system: SystemDescription) -> dict[str, Any]:
    return dataclasses.asdict(system)


def _flatbuffer_sections(path: Path) -> Sections:
    from ttcodegen.flatbuffer.system import system_of
    from ttcodegen.runtime.executable import TTMExecutable, TTNNExecutable, open_flatbuffer

    executable = open_flatbuffer(path)
    header = executable.header
    sections: dict[str, Callable[[], Any]] = {
        "version": lambda: {
            "file": f"{header.major}.{header.minor}",
            "tool": header.tool_version,
            "tt_metal": header.release,
            "input_sha256": header.input_hash,
        },
        "system_desc": lambda: _system_json(system_of(header)),
        **_interface_sections(executable),
    }
    if isinstance(executable, TTNNExecutable):
        binary = executable.binary
        sections |= {"mlir": lambda: _mlir(binary), "cpp": lambda: _cpp(binary, path)}
    elif isinstance(executable, TTMExecutable):
        programs = executable.binary.programs
        sections["cpp"] = lambda: _kernels(programs)
    return sections


def _kernels(programs: Sequence[DeviceProgram]) -> str:
    """C++ of all kernels without duplicates."""
    texts = {kernel.source: f"{p.name}: {kernel.name}" for p in programs for kernel in p.kernels}
    return "\n".join(f"// {name}\n{text}" for text, name in texts.items())


def _mlir(binary: Binary) -> str:
    from ttcodegen.flatbuffer.modules import module_of
    from ttcodegen.transforms.module_text import ELIDED_ELEMENTS, module_text

    return module_text(module_of(binary), elide_above=ELIDED_ELEMENTS)


def _cpp(binary: Binary, path: Path) -> str:
    """C++ of the program, generated again."""
    from ttcodegen.conversions.ttnn_to_emitc import ConvertTTNNToEmitC
    from ttcodegen.emission.interface_description import module_name
    from ttcodegen.emitc.printer import print_module
    from ttcodegen.flatbuffer.modules import module_of
    from ttcodegen.ops.dialects import load_dialects

    module = module_of(binary)
    name = module_name(path.absolute().parent.name if path.stem == "model" else path.stem)
    pass_ = ConvertTTNNToEmitC(name, binary.input_hash, binary.release)
    with blamed_on(path):
        pass_.apply(load_dialects(), module)
        files = print_module(module)
    return "\n".join(f"// {file}\n{text}" for file, text in files.items())


def _interface_sections(executable: Executable) -> Sections:
    return {
        "inputs": lambda: {
            program.name: [tensor.to_json() for tensor in program.arguments]
            for program in executable.programs
        },
        "outputs": lambda: {
            program.name: [tensor.to_json() for tensor in program.outputs]
            for program in executable.programs
        },
    }


def _library_sections(path: Path) -> Sections:
    """Sections of a shared object, which is not loaded, as that would run its code."""
    from ttcodegen.runtime.c_api import API_VERSION, describe_library
    from ttcodegen.runtime.executable import flatbuffer_beside

    description = describe_library(path)
    manifest = description.manifest
    version = {
        "api": API_VERSION,
        "tool": manifest.get("tool_version"),
        "tt_metal": manifest.get("tt_metal_release"),
    }
    sections: dict[str, Callable[[], Any]] = {
        "version": lambda: version,
        "inputs": lambda: _library_tensors(description, "inputs"),
        "outputs": lambda: _library_tensors(description, "outputs"),
    }
    flatbuffer = flatbuffer_beside(path)
    if flatbuffer is not None:
        others = _flatbuffer_sections(flatbuffer)
        borrowed = [name for name in ("system_desc", "mlir", "cpp") if name in others]
        sections |= {name: others[name] for name in borrowed}
    return sections


def _library_tensors(library: LibraryDescription, group: str) -> dict[str, Any]:
    """Inputs or outputs of each function by the manifest.

    Raises:
        CompileError: if the manifest is damaged.
    """
    try:
        return {
            function["name"]: [
                {
                    "name": row["name"],
                    "kind": row["kind"],
                    "shape": list(row["shape"]),
                    "data_type": row["dtype"],
                    "source_dtype": row["source_dtype"],
                    "layout": row["layout"],
                    "buffer_type": row["buffer_type"],
                    "memory_layout": None,
                }
                for row in _in_order(library, function[group])
            ]
            for function in library.functions()
        }
    except (KeyError, TypeError):
        raise CompileError("the manifest of the shared object is damaged") from None


def _in_order(
    library: LibraryDescription, rows: Sequence[Mapping[str, Any]]
) -> Sequence[Mapping[str, Any]]:
    """Orders tensors as in the source for a library in its project, else as in its C API.

    There, weights follow the inputs.
    """
    if library.is_in_project:
        return rows
    return sorted(rows, key=lambda row: row["kind"] in ("parameter", "constant"))
