"""Files of a project besides the module's sources."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import isinf, prod
from typing import TYPE_CHECKING, Any, TypeVar

from ttcodegen.conversions.host_functions.cpp_interface import title_of
from ttcodegen.conversions.ttmetal_to_emitc.recording import shards_text
from ttcodegen.emission.buckets import Extents
from ttcodegen.emission.description import (
    FunctionDescription,
    ModuleDescription,
    TensorDescription,
    TensorKind,
)
from ttcodegen.emission.templates import (
    TEMPLATES,
    clang_format_style,
    template_environment,
    template_text,
)
from ttcodegen.emitc.formatting import start_formatting
from ttcodegen.emitc.spelling import comment_line, float_value, string_literal
from ttcodegen.naming.arguments import prepare_name
from ttcodegen.project.edits import LINES, formatted_lines, lines_archive
from ttcodegen.systems.cards import links_between
from ttcodegen.systems.releases import release_named
from ttcodegen.version import __version__

if TYPE_CHECKING:
    from ttcodegen.compilation import CompiledModule


# The text of the project's files around the module's own sources.

FLATBUFFER_FILES = {"ttnn": "model.ttnn", "ttmetal": "model.ttm"}
"""Path of the flatbuffer in the project, by target."""

CPU_FUNCTIONS = "src/cpu_functions.cpp"
_CAPI_TYPES = "include/ttcodegen/capi.h"
_BUILD_SUPPORT = "support/backend.cmake"
"""CMake support file that every project needs."""
_SUPPORT_INCLUDE = re.compile(
    r'^#include "(support/\w+\.hpp|include/ttcodegen/\w+\.h)"', re.MULTILINE
)
_IMPLEMENTATIONS = {"support/tensor.hpp": "support/tensors.cpp"}
"""Sources that implement a support header of another name."""
_ENTRY_POINTS = ("src/entry_points.cpp", "src/main.cpp", "src/generate.cpp", "src/capi.cpp")
"""Sources that CMake adds to specific targets."""
_COPIED = (".clang-format", "CMakePresets.json")
_HOST_TYPES: Mapping[str, Mapping[str, Any]] = {
    "ttnn": {
        "tensor": "ttnn::Tensor",
        "device": "ttnn::MeshDevice",
        "headers": ("ttnn/device.hpp", "ttnn/tensor/tensor.hpp", "ttnn/types.hpp"),
    },
    "ttmetal": {
        "tensor": "support::DeviceTensor",
        "device": "tt::tt_metal::distributed::MeshDevice",
        "headers": (
            "tt-metalium/experimental/tensor/spec/layout/layout.hpp",
            "tt-metalium/experimental/tensor/tensor_types.hpp",
            "tt-metalium/mesh_device.hpp",
        ),
    },
}
"""Tensor and device types of function signatures, by target."""
_MEMORIES = {"dram": "dram", "l1": "l1", "system_memory": "host"}


@cache
def support_files(target: str) -> dict[str, str]:
    """Support files of a target, by path; a project gets those that it needs."""
    files: dict[str, str] = {}
    for folder in ("support", f"support_{target}"):
        for entry in TEMPLATES.joinpath(folder).iterdir():
            files[f"support/{entry.name}"] = entry.read_text("utf-8")
    return {path: files[path] for path in sorted(files)} | {_CAPI_TYPES: template_text(_CAPI_TYPES)}


def needed_support(target: str, sources: Iterable[str]) -> dict[str, str]:
    """Transitive closure of the support files that sources include."""
    files = support_files(target)
    needed = {_BUILD_SUPPORT}
    pending = [header for text in sources for header in _SUPPORT_INCLUDE.findall(text)]
    while pending:
        path = pending.pop()
        if path in files and path not in needed:
            needed.add(path)
            pending += _SUPPORT_INCLUDE.findall(files[path])
            pending.append(_IMPLEMENTATIONS.get(path, path.replace(".hpp", ".cpp")))
    return {path: text for path, text in files.items() if path in needed}


def render_sources(module: ModuleDescription) -> dict[str, str]:
    """Renders the C++ files in src/ that follow from the description, unformatted, by path."""
    environment = template_environment()
    context = _context(module)
    called = module.cpp_functions
    context["functions"] = [_function_context(module, function) for function in called]
    context["pipelines"] = _pipeline_contexts(module)
    weights = [tensor for function in called for tensor in function.weights]
    context["is_divided"] = any(
        tensor.divided for function in called for tensor in function.outputs
    )
    context["uses_tuning"] = module.traced or any(tensor.tuned_type for tensor in weights)
    names = ["entry_points.hpp", "entry_points.cpp"] * module.has_entry_points
    names += ["main.cpp"] * module.has_executable + ["capi.cpp"] * module.has_library
    if module.has_executable and module.generation is not None:
        names += ["generate.hpp", "generate.cpp"]
    return {
        f"src/{name}": environment.get_template(f"{name}.jinja").render(context) for name in names
    }


def render_project_files(module: ModuleDescription, sources: Mapping[str, str]) -> dict[str, str]:
    """Renders all files except the module's sources, by path.

    Args:
        module: the compiled module.
        sources: compiler output and files of `render_sources`, by path.
    """
    environment = template_environment()
    context = _context(module)
    context.update(_readme_context(module))
    # Kernels are not built here: they are compiled when launched.
    context["module_sources"] = sorted(
        path
        for path in sources
        if path.startswith("src/") and path.endswith(".cpp") and path not in _ENTRY_POINTS
    )
    context["cpu_functions"] = CPU_FUNCTIONS
    context["has_kernels"] = module.target == "ttmetal" or any(
        path.startswith("kernels/") for path in sources
    )
    context["has_tuning"] = "src/tuning.hpp" in sources
    # Programs without entry points capture calls themselves.
    including = [*sources.values(), '#include "support/trace.hpp"' if module.traced else ""]
    support = needed_support(module.target, including)
    context["support_sources"] = [path for path in support if path.endswith(".cpp")]
    binaries = [module.name] * module.has_library + [f"{module.name}_main"] * module.has_executable
    context["binaries"] = " ".join(binaries)
    templates = {"CMakeLists.txt": "CMakeLists.txt.jinja", "README.md": "README.md.jinja"}
    if module.hosts != (1, 1):
        context["links"] = links_between(
            module.arch, prod(module.hosts) if module.pipelines else prod(module.mesh)
        )
        context["connected"] = sorted(
            {
                (sender, receiver)
                for pipeline in module.pipelines
                for receiver, stage in enumerate(pipeline.stages)
                for sender, _ in stage.inputs
                if sender >= 0
            }
        )
        for name in ("mesh_graph_descriptor.textproto", "rank_bindings.yaml"):
            templates[f"hosts/{name}"] = f"hosts/{name}.jinja"
    if module.has_library:
        templates[f"include/{module.name}.h"] = "module_capi.h.jinja"
    rendered = {
        path: environment.get_template(template).render(context)
        for path, template in templates.items()
    }
    copied = {path: template_text(path) for path in _COPIED}
    return {**rendered, **copied, **in_release(support, module.release)}


def in_release(support: Mapping[str, str], release: str) -> dict[str, str]:
    """Renames APIs in support files to a release's names, by path."""
    names = release_named(release).names
    found = dict(support)
    for path, text in support.items():
        for before, after in names.items():
            text = text.replace(before, after)
        found[path] = text
    return found


def _context(module: ModuleDescription) -> dict[str, Any]:
    macro = module.name.upper()
    return {
        "name": module.name,
        "emulated_card": module.card,
        "title": title_of(module.name, module.input_hash, module.release).splitlines(),
        "version": __version__,
        "target": module.target,
        "has_library": module.has_library,
        "has_executable": module.has_executable,
        "has_entry_points": module.has_entry_points,
        "reads_files_only": module.kind == "runner",
        "support_target": f"ttcodegen_support_{module.target}",
        "types": _HOST_TYPES[module.target],
        "release": module.release,
        "definitions": " ".join(release_named(module.release).definitions),
        "macro": macro,
        "guard": f"{macro}_H",
        "module_literal": string_literal(module.name),
        "arch": module.arch,
        "flatbuffer": FLATBUFFER_FILES[module.target],
        "has_flatbuffer": module.has_flatbuffer,
        "mesh": module.mesh,
        "fabric": module.fabric,
        "hosts": module.hosts if module.hosts != (1, 1) else None,
        "stages": max((len(each.stages) for each in module.pipelines), default=0),
        "traced": module.traced,
        "generation": _generation_context(module),
        "buckets": _bucket_context(module),
    }


def _generation_context(module: ModuleDescription) -> dict[str, Any] | None:
    """Template context of a decoder's token generation; None for other modules."""
    content = module.generation
    if content is None:
        return None
    places = {function.name: place for place, function in enumerate(module.functions)}
    names = {function.name: function.cpp_name for function in module.functions}
    buckets = sorted((int(length), name) for length, name in content["prefill"].items())
    roles = {role: names[content[role]] for role in ("decode", "greedy", "sample")}
    return {
        **{key: content[key] for key in ("batch", "length", "vocabulary", "stop", "pad")},
        **roles,
        "functions": [{"name": names[name], "place": place} for name, place in places.items()],
        "buckets": [{"length": length, "function": names[name]} for length, name in buckets],
        "state": [
            {
                # All functions share one module and thus one name of the buffer.
                "input": string_literal(tensor.inputs[content["decode"]]),
                "output": string_literal(tensor.outputs[content["decode"]]),
            }
            for tensor in module.state
        ],
    }


def _bucket_context(module: ModuleDescription) -> dict[str, Any] | None:
    """Template context of a model with dynamic dimensions; None for other modules."""
    buckets = module.buckets
    if buckets is None:
        return None
    places = {function.name: place for place, function in enumerate(module.functions)}
    numbers = {each.name: number for number, each in enumerate(buckets.dimensions)}

    def extents(tensor: Extents) -> str:
        return ", ".join(
            f"{{{e.offset}, {numbers[e.dimension]}, {e.scale}}}"
            if e.dimension
            else f"{{{e.offset}}}"
            for e in tensor
        )

    largest = module.functions[places[list(buckets.functions.values())[-1]]]
    tables = dict(_tables(module, largest))
    spans = [tables[key]["name"] if key in tables else "{}" for key in _TABLE_KINDS]
    row = [string_literal(buckets.name), string_literal(buckets.name), *spans, "nullptr", "nullptr"]
    return {
        "function": buckets.name,
        "has_infinities": any(map(isinf, buckets.padding)),
        "dimensions": [
            {"name": string_literal(each.name), "least": each.least} for each in buckets.dimensions
        ],
        "text": "; ".join(
            f"`{each.name}` from {each.least} to {each.sizes[-1]}, in buckets of "
            f"{', '.join(map(str, each.sizes))}"
            for each in buckets.dimensions
        ),
        "inputs": [
            {
                "name": f"input_{i}",
                "extents": extents(tensor),
                "padding": float_value(value, double=True).text,
            }
            for i, (tensor, value) in enumerate(zip(buckets.inputs, buckets.padding, strict=True))
        ],
        "outputs": [
            {"name": f"output_{i}", "extents": extents(tensor), "padding": "0"}
            for i, tensor in enumerate(buckets.outputs)
        ],
        "functions": [
            {
                "name": module.functions[places[name]].cpp_name,
                "place": places[name],
                "sizes": ", ".join(map(str, sizes)),
            }
            for sizes, name in buckets.functions.items()
        ],
        "row": "{" + ", ".join(row) + "}",
    }


def _readme_context(module: ModuleDescription) -> dict[str, Any]:
    return {
        "functions": [
            {"cpp_name": function.cpp_name, "rows": list(_readme_rows(module, function))}
            for function in module.functions
        ],
        "example_input": _example_input(module),
        "python_arguments": ", ".join(tensor.field for tensor in module.functions[0].inputs),
    }


def _example_input(module: ModuleDescription) -> str:
    """Name of an example input, or of a weight without inputs."""
    functions = module.functions
    inputs = [tensor.field for function in functions for tensor in function.inputs]
    inputs += [tensor.field for function in functions for tensor in function.arguments]
    return inputs[0] if inputs else "name"


@dataclass(frozen=True)
class _CppFunction:
    """C++ function of the tables: name, parameters and statements."""

    name: str
    parameters: str
    statements: tuple[str, ...]


def _function_context(module: ModuleDescription, function: FunctionDescription) -> dict[str, Any]:
    tables = dict(_tables(module, function))
    spans = [tables[key]["name"] if key in tables else "{}" for key in _TABLE_KINDS]
    state: list[tuple[str, str]] = []
    if function.weights:
        state.append((function.struct("Weights"), "weights"))
    if function.has_constants:
        state.append((function.struct("Constants"), "constants"))
    prepare = _prepare(module, function)
    run = _run(module, function)
    row = [string_literal(function.name), string_literal(function.cpp_name), *spans]
    return {
        "name": function.name,
        "cpp_name": function.cpp_name,
        "comment": comment_line(function.name),
        "tables": list(tables.values()),
        "state": function.struct("State"),
        "state_fields": state,
        "prepare": prepare,
        "run": run,
        "row": "{" + ", ".join([*row, prepare.name, run.name]) + "}",
    }


def _pipeline_contexts(module: ModuleDescription) -> list[dict[str, Any]]:
    """Template contexts of pipelined functions: tables of whole functions and origins of
    tensors."""
    found: list[dict[str, Any]] = []
    place = 0
    for function, pipeline in zip(module.functions, module.pipelines, strict=False):
        tables = dict(_tables(module, function))
        spans = [tables[key]["name"] if key in tables else "{}" for key in _TABLE_KINDS]
        names = [string_literal(function.name), string_literal(function.cpp_name)]
        stages: list[dict[str, Any]] = []
        for stage in pipeline.stages:
            stages.append(
                {
                    "name": stage.function.cpp_name,
                    "place": place,
                    "inputs": _places(stage.inputs),
                    "weights": ", ".join(map(str, stage.weights)),
                }
            )
            place += 1
        found.append(
            {
                "comment": comment_line(function.name),
                "cpp_name": function.cpp_name,
                "tables": list(tables.values()),
                "stages": stages,
                "outputs": _places(pipeline.outputs),
                "micro_batches": pipeline.micro_batches,
                "row": "{" + ", ".join([*names, *spans, "nullptr", "nullptr"]) + "}",
            }
        )
    return found


def _places(origins: Iterable[tuple[int, int]]) -> str:
    return ", ".join(f"{{{stage}, {index}}}" for stage, index in origins)


_TABLE_KINDS = ("Inputs", "Weights", "Outputs")


def _tables(
    module: ModuleDescription, function: FunctionDescription
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    kinds = (function.inputs, function.weights, function.outputs)
    for kind, tensors in zip(_TABLE_KINDS, kinds, strict=True):
        if tensors:
            rows = [
                {
                    "member": tensor.path or tensor.field,
                    "text": _table_row(module, function, tensor),
                }
                for tensor in tensors
            ]
            name = f"{function.cpp_name}_{kind.lower()}"
            yield kind, {"name": name, "struct": function.struct(kind), "rows": rows}


def _table_row(
    module: ModuleDescription, function: FunctionDescription, tensor: TensorDescription
) -> str:
    file = module.weight_file(function, tensor) if tensor.is_weight else tensor.field
    drawing = tensor.effective_drawing
    bounds = f"{float(drawing.low)!r}, {float(drawing.high)!r}"
    texts = ", ".join(string_literal(text) for text in (tensor.name, tensor.field, file))
    sizes = ", ".join(str(size) for size in tensor.shape)
    accepted = ""
    if tensor.kind is TensorKind.OUTPUT or tensor.shards is not None:
        tolerance = tensor.effective_tolerance
        accepted = f", {{{tolerance.correlation}, {tolerance.range_error}}}"
    shards = ""
    if tensor.shards is not None and tensor.memory_layout is not None:
        shards = f", {shards_text(tensor.shards, tensor.memory_layout)}"
    if tensor.divided:
        accepted = accepted or ", {1, 0}"
        shards = f"{shards or ', {}'}, {{{', '.join(map(str, tensor.divided))}}}"
    data_type = f"DataType::{tensor.data_type.cpp}"
    if tensor.tuned_type:
        data_type = f"{module.name}::{tensor.tuned_type}"
    return (
        f"{{{texts}, Kind::{tensor.kind}, {len(tensor.shape)}, {{{sizes}}}, "
        f"{data_type}, Layout::{tensor.layout.name}, "
        f"Memory::{_MEMORIES[tensor.buffer_type]}, "
        f"{{Distribution::{drawing.distribution}, {bounds}}}{accepted}{shards}}}"
    )


def _parameters(declared: Iterable[tuple[str, str, bool]]) -> str:
    """Parameter list; names of unused parameters are comments."""
    return ", ".join(
        f"{type_} {name}" if used else f"{type_} /*{name}*/" for type_, name, used in declared
    )


def _prepare(module: ModuleDescription, function: FunctionDescription) -> _CppFunction:
    has_weights = bool(function.weights)
    device = _HOST_TYPES[module.target]["device"]
    statements: list[str] = []
    if has_weights:
        fields = f"{function.cpp_name}_weights_members"
        statements.append(f"state->weights = support::with_members({fields}, weights);")
    if function.has_constants:
        arguments = "state->weights, device" if has_weights else "device"
        call = f"{module.name}::{prepare_name(function.cpp_name)}({arguments})"
        statements.append(f"state->constants = {call};")
    declared = [
        ("Tensors", "weights", has_weights),
        (f"{device}&", "device", function.has_constants),
    ]
    return _CppFunction(
        f"call_{prepare_name(function.cpp_name)}", _parameters(declared), tuple(statements)
    )


def _run(module: ModuleDescription, function: FunctionDescription) -> _CppFunction:
    has_state = bool(function.weights) or function.has_constants
    device = _HOST_TYPES[module.target]["device"]
    arguments: list[str] = []
    statements: list[str] = []
    if has_state:
        state = function.struct("State")
        statements.append(f"const auto& state = *static_cast<const {state}*>(prepared);")
    if function.inputs:
        fields = f"{function.cpp_name}_inputs_members"
        arguments.append(f"support::with_members({fields}, inputs)")
    if function.weights:
        arguments.append("state.weights")
    if function.has_constants:
        arguments.append("state.constants")
    call = f"{module.name}::{function.cpp_name}({', '.join([*arguments, 'device'])})"
    if function.outputs:
        statements.append(f"const auto outputs = {call};")
        fields = f"{function.cpp_name}_outputs_members"
        members = f"support::members_of(outputs, {fields})"
        if any(tensor.divided for tensor in function.outputs):
            members = f"support::divided_as({members}, {function.cpp_name}_outputs)"
        statements.append(f"return {members};")
    else:
        statements += [f"{call};", "return {};"]
    declared = [
        ("Tensors", "inputs", bool(function.inputs)),
        ("const void*", "prepared", has_state),
        (f"{device}&", "device", True),
    ]
    return _CppFunction(f"call_{function.cpp_name}", _parameters(declared), tuple(statements))


def _readme_rows(
    module: ModuleDescription, function: FunctionDescription
) -> Iterator[dict[str, str]]:
    for tensor in (*function.arguments, *function.outputs):
        file = f"data/{module.weight_file(function, tensor)}.npy" if tensor.is_weight else ""
        yield {
            "name": _markdown(tensor.name),
            "kind": tensor.kind.value,
            "shape": str(tensor.shape),
            "type": tensor.data_type.name.lower(),
            "file": f"`{file}`" if file else "",
        }


def _markdown(text: str) -> str:
    """Escapes input text for a Markdown table cell."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return html.escape(line).replace("|", "&#124;").replace("`", "&#96;").replace("_", "\\_")


# All files of a project, as they are written.

_Content = TypeVar("_Content")


def project_files(compiled: CompiledModule, *, formatted: bool) -> dict[str, str | bytes]:
    """Files of a module's project except data and manifest, by path.

    Args:
        compiled: the module with its printed C++.
        formatted: whether to format C++ in the project's style.

    Raises:
        CompileError: if clang-format is missing or fails.
    """
    module = compiled.description
    sources = _merged(compiled.files, render_sources(module))
    # clang-format runs in other processes while templates are rendered.
    formatting = start_formatting(sources, clang_format_style()) if formatted else None
    try:
        others = render_project_files(module, sources)
        if formatting is not None:
            sources = formatting.result()
    finally:
        if formatting is not None:
            formatting.close()
    flatbuffer = {FLATBUFFER_FILES[module.target]: compiled.flatbuffer}
    lines = lines_archive(formatted_lines(compiled.lines, compiled.files, sources))
    return _merged(sources, others, flatbuffer if module.has_flatbuffer else {}, {LINES: lines})


def _merged(*parts: Mapping[str, _Content]) -> dict[str, _Content]:
    """Merges file maps; raises ValueError for duplicate paths."""
    files: dict[str, _Content] = {}
    for part in parts:
        if twice := sorted(files.keys() & part.keys()):
            raise ValueError(f"two files of the project are called {', '.join(twice)}")
        files |= part
    return files
