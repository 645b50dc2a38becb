"""The C++ of the host: functions, programs, and what the manifest says of them."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.ttmetal.emission import emitted
from tests.ttmetal.exp_module import TILES, exp_module, exp_program
from ttcodegen.compilation import CompileOptions, compile_module
from ttcodegen.conversions.host_functions.layer_analysis import LONGEST
from ttcodegen.conversions.ttmetal_to_emitc.functions import device_entries
from ttcodegen.conversions.ttmetal_to_emitc.recording import share_programs
from ttcodegen.dialects.core.datatypes import DataType
from ttcodegen.dialects.ttcore.shards import Layout
from ttcodegen.dialects.ttmetal.device_module import ProgramAttr, device_programs
from ttcodegen.dialects.ttmetal.programs import (
    BufferAddress,
    CoreArea,
    Kernel,
    NamedConstant,
    NocX,
    NocY,
    Place,
    Program,
    RuntimeArgument,
)
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.emission.manifest_entries import kernel_entries, page_size
from ttcodegen.emission.program_sources import KINDS_IN_FILE, render_programs
from ttcodegen.flatbuffer.writer import Origin
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.systems.cards import default_system

ORIGIN = Origin("abc", "wormhole_b0", "0.70.1")


def one_line(text: str) -> str:
    """A text in which it does not matter where lines are broken."""
    return " ".join(text.split())


def with_kernels(kernels: Sequence[Kernel], **changes: object) -> Program:
    """The program `exp` with other kernels."""
    return dataclasses.replace(exp_program(), kernels=tuple(kernels), **changes)  # type: ignore[arg-type]


def programs_text(program: Program) -> str:
    """`programs.cpp` of a module that launches a program, in one line."""
    return programs_text_of(exp_module(program=program))


def programs_text_of(module: ModuleOp) -> str:
    """The same of a module."""
    functions = [entry.function for entry in device_entries(module)]
    paths = {
        (found.program.name, kernel.name): f"kernels/{kernel.name}.cpp"
        for found in device_programs(functions)
        for kernel in found.program.kernels
    }
    shared = share_programs(functions, paths)
    return one_line(render_programs("tiny", shared, "a title")["src/programs.cpp"])


def test_the_function_launches_the_program() -> None:
    text = one_line(emitted(exp_module(), ORIGIN).files["src/tiny.cpp"])
    assert (
        "support::DeviceTensor exp = run_exp(*constants.programs, inputs.x, device); "
        "return ForwardOutputs{.y = exp};"
    ) in text
    assert "return ForwardConstants{.programs = std::make_shared<Programs>()};" in text


def test_the_function_of_a_program_makes_what_it_computes() -> None:
    text = programs_text(exp_program())
    assert (
        "DeviceTensor run_exp(Programs& programs, const DeviceTensor& x, MeshDevice& device) { "
        "DeviceTensor y = support::create_tensor({64, 96}, DataType::BFLOAT16, Layout::TILE, "
        "device); Workload& workload = programs.exp;"
    ) in text
    assert "workload.enqueue(device); return y; }" in text


def test_operands_are_called_as_kernels_call_them() -> None:
    header = one_line(emitted(exp_module(), ORIGIN).files["src/programs.hpp"])
    assert (
        "support::DeviceTensor run_exp(Programs& programs, const support::DeviceTensor& x, "
        "tt::tt_metal::distributed::MeshDevice& device);"
    ) in header


def test_the_circular_buffer_of_a_long_name_is_called_as_kernels_call_it() -> None:
    # As long as a name may be, so that with its prefix it is longer.
    long = "encoder_block_12_self_attention_output_projection_weight_permuted"[-64:]
    module = exp_module()
    buffers = exp_program().circular_buffers
    renamed = (dataclasses.replace(buffers[0], name=long), *buffers[1:])
    kernels = [
        dataclasses.replace(
            kernel,
            constants=tuple(
                dataclasses.replace(constant, name=renamed[0].constant)
                if constant.name == buffers[0].constant
                else constant
                for constant in kernel.constants
            ),
        )
        for kernel in exp_program().kernels
    ]
    program = dataclasses.replace(exp_program(), circular_buffers=renamed, kernels=tuple(kernels))
    launch_all(module, [program])
    text = programs_text_of(module)
    assert f"enum CircularBuffers : std::uint8_t {{ cb_{long} = 0," in text


def test_circular_buffers_and_kernels() -> None:
    text = programs_text(exp_program(DataType.FLOAT32))
    for expected in (
        "const CoreRange cores({0, 0}, {1, 1});",
        f"constexpr std::uint32_t tiles = {TILES};",
        "enum CircularBuffers : std::uint8_t { cb_x = 0, cb_y = 1, };",
        "create_circular_buffer(program, cores, cb_x, DataFormat::Float32, 2, 4096);",
        'ReaderDataMovementConfig(support::accessor_args({&x}), {}, {{"cb_x", cb_x}})',
        'WriterDataMovementConfig(support::accessor_args({&y}), {}, {{"cb_y", cb_y}})',
        "using Tuning = tuning::exp;",
        'support::require_l1(device, "exp", Tuning::l1_bytes);',
        "compute_config.math_fidelity = Tuning::math_fidelity;",
        "compute_config.fp32_dest_acc_en = Tuning::fp32_dest_acc_en;",
        "compute_config.math_approx_mode = Tuning::math_approx_mode;",
        "compute_config.unpack_to_dest_mode = support::unpack_to_fp32({cb_x});",
        'compute_config.named_compile_args = {{"cb_x", cb_x}, {"cb_y", cb_y}};',
        'CreateKernel(program, kernel_path("compute_exp.cpp"), cores, compute_config)',
    ):
        assert expected in text, expected


def test_linear_work_is_divided() -> None:
    text = programs_text(exp_program())
    assert "for (const support::CoreWork& share : support::split_work(cores, tiles)) {" in text
    arguments = "share.core, {x.address(), share.first, share.count});"
    assert f"SetRuntimeArgs(program, workload.kernel(reader), {arguments}" in text
    assert "SetRuntimeArgs(program, workload.kernel(compute), share.core, {share.count});" in text


def test_cores_of_a_grid_know_their_place() -> None:
    reader, compute, writer = exp_program().kernels
    places = (
        RuntimeArgument("x_address", BufferAddress(0)),
        RuntimeArgument("sender_x", NocX(0, Place.ROW)),
        RuntimeArgument("sender_y", NocY(Place.COLUMN, 1)),
        RuntimeArgument("column", Place.COLUMN),
        RuntimeArgument("rows", 2),
    )
    kernels = [
        dataclasses.replace(reader, arguments=places, semaphores=("sent",)),
        dataclasses.replace(compute, arguments=()),
        dataclasses.replace(writer, arguments=(RuntimeArgument("y_address", BufferAddress(1)),)),
    ]
    text = programs_text(with_kernels(kernels, work_units=0, semaphores=("sent", "free")))
    for expected in (
        "const std::uint32_t sent_semaphore = CreateSemaphore(program, cores, 0);",
        '{{"cb_x", cb_x}, {"sent_semaphore", sent_semaphore}}',
        "for (const CoreCoord& core : support::each_core(cores)) { "
        "SetRuntimeArgs(program, workload.kernel(reader), core, "
        "{x.address(), support::noc_x(device, 0, core.y), support::noc_y(device, core.x, 1), "
        "static_cast<std::uint32_t>(core.x), 2}); }",
        "SetRuntimeArgs(program, workload.kernel(writer), cores, {y.address()});",
        "set_arguments(workload, x, y, device);",
    ):
        assert expected in text, expected
    assert "kernel(compute)," not in text


def test_kernels_of_other_cores_and_other_constants() -> None:
    reader, compute, writer = exp_program().kernels
    first = CoreArea(0, 1)
    sender = dataclasses.replace(
        reader,
        name="read_and_send",
        cores=first,
        constants=(*reader.constants, NamedConstant("tiles_in_row", 3), NamedConstant("own", 1)),
    )
    receiver = dataclasses.replace(
        reader,
        name="receive",
        cores=CoreArea(1, 1, first_column=1),
        constants=(NamedConstant("tiles_in_row", 3), NamedConstant("own", 2)),
        accessors=(),
        arguments=(),
    )
    text = programs_text(with_kernels([sender, receiver, compute, writer]))
    assert "enum Kernels : std::size_t { read_and_send, receive, compute, writer };" in text
    assert "constexpr std::uint32_t tiles_in_row = 3;" in text
    assert '{{"cb_x", cb_x}, {"tiles_in_row", tiles_in_row}, {"own", 1}}' in text
    assert '{{"tiles_in_row", tiles_in_row}, {"own", 2}}' in text
    assert 'kernel_path("receive.cpp"), CoreRange({1, 0}, {1, 1}),' in text
    assert "support::split_work(CoreRange({0, 0}, {0, 1}), tiles)" in text


def test_the_manifest_says_how_kernels_are_compiled() -> None:
    sources = emitted(exp_module(DataType.FLOAT32), ORIGIN)
    reader, compute, _ = sources.manifest.kernels
    assert reader == {
        "file": "kernels/read_exp.cpp",
        "processor": "riscv_1",
        "name": "read_exp",
        "program": "exp",
        "cores": [[0, 0], [1, 1]],
        "compile_args": [2, 4096],
        "named_compile_args": {"cb_x": 0},
        "runtime_args": ["x_address", "first", "count"],
        "circular_buffers": compute["circular_buffers"],
    }
    assert compute["circular_buffers"][0] == {
        "index": 0,
        "data_format": "Float32",
        "page_size": 4096,
        "num_pages": 2,
        "unpack_to_dest_fp32": True,
    }
    assert (compute["math_fidelity"], compute["fp32_dest_acc_en"]) == ("HiFi4", True)
    program = sources.manifest.programs[0]
    assert (program["launches"], program["l1_bytes"]) == (1, 2 * 2 * 4096)
    assert program["costs"]["dram_read_bytes"] == TILES * 4096
    json.dumps(sources.manifest.programs)


def test_kernels_with_the_same_text_share_a_file() -> None:
    reader, compute, writer = exp_program().kernels
    reader = dataclasses.replace(reader, cores=CoreArea(0, 1))
    other = dataclasses.replace(reader, name="read_again", cores=CoreArea(1, 1, 1, 0))
    module = exp_module(program=with_kernels([reader, other, compute, writer]))
    sources = emitted(module, ORIGIN)
    assert [kernel["file"] for kernel in sources.manifest.kernels].count(
        "kernels/read_exp.cpp"
    ) == 2
    assert "kernels/read_again.cpp" not in sources.files


def test_two_programs_of_one_name_are_a_bug() -> None:
    module = exp_module()
    other = exp_module(program=dataclasses.replace(exp_program(), purpose="something else"))
    functions = [device_entries(m)[0].function for m in (module, other)]
    with pytest.raises(ValueError, match="two programs are called 'exp'"):
        device_programs(functions)


def test_the_same_module_gives_the_same_bytes() -> None:
    first, second = emitted(exp_module(), ORIGIN), emitted(exp_module(), ORIGIN)
    assert first.files == second.files
    assert list(first.files) == list(second.files)


def test_many_programs_are_divided_among_files() -> None:
    module = exp_module()
    names = [f"exp_of_{'x' * number}" for number in range(1, KINDS_IN_FILE + 2)]
    # What they compute is not the same.
    programs = [dataclasses.replace(exp_program(), name=n, purpose=f"{n} exp") for n in names]
    launch_all(module, programs)
    paths = {
        (program.name, kernel.name): "kernels/kernel.cpp"
        for program in programs
        for kernel in program.kernels
    }
    shared = share_programs([device_entries(module)[0].function], paths)
    texts = render_programs("tiny", shared, "a title")
    assert list(texts) == [
        "src/programs.hpp",
        "src/tuning.hpp",
        "src/programs.cpp",
        "src/programs_2.cpp",
    ]
    assert all(f" run_{name}(" in texts["src/programs.hpp"] for name in names)
    assert f"namespace {names[-1]}_program" in texts["src/programs_2.cpp"]
    assert f"namespace {names[-1]}_program" not in texts["src/programs.cpp"]


def launch_all(module: ModuleOp, programs: Sequence[Program]) -> None:
    """Lets the function of a module launch programs one after the other, each on what the one
    before it gives."""
    function = device_entries(module)[0].function
    create, launch, terminator = function.body.block.ops
    launch.properties["program"] = ProgramAttr(programs[0])
    for program in programs[1:]:
        copies = [create.clone(), launch.clone()]
        copies[1].operands = [launch.operands[1], copies[0].results[0]]
        copies[1].properties["program"] = ProgramAttr(program)
        function.body.block.insert_ops_before(copies, terminator)
        create, launch = copies
    terminator.operands = [launch.operands[1]]


def named(names: Sequence[str]) -> list[Program]:
    """The program `exp` under several names."""
    return [dataclasses.replace(exp_program(), name=name) for name in names]


def test_programs_that_differ_in_names_only_are_one() -> None:
    module = exp_module()
    launch_all(module, named(["exp", "exp_2"]))
    files = emitted(module, ORIGIN).files
    assert files["src/programs.cpp"].count("Workload build(") == 1
    assert (
        "support::DeviceTensor exp = run_exp(*constants.programs, inputs.x, device); "
        "exp = run_exp(*constants.programs, exp, device); return"
    ) in one_line(files["src/tiny.cpp"])


def test_programs_that_do_not_run_alike_are_called_after_shapes() -> None:
    module = exp_module()
    one, two = named(["exp", "exp_2"])
    launch_all(module, [one, dataclasses.replace(two, work_units=1)])
    files = emitted(module, ORIGIN).files
    assert " run_exp(" in files["src/programs.hpp"]
    assert " run_exp_64x96(" in files["src/programs.hpp"]
    assert "struct exp_64x96 : exp {};" in files["src/tuning.hpp"]


def test_a_tensor_that_is_there_already_is_passed_to_the_program() -> None:
    module = exp_module()
    launch_all(module, named(["exp", "exp_2"]))
    function = device_entries(module)[0].function
    _, first, create, second, _ = function.body.block.ops
    # The tensor of the second launch is created before the first one.
    create.detach()
    function.body.block.insert_op_before(create, first)
    assert second.operands[1] is create.results[0]
    text = one_line(emitted(module, ORIGIN).files["src/tiny.cpp"])
    assert (
        "support::DeviceTensor exp = support::create_tensor({64, 96}, DataType::BFLOAT16, "
        "Layout::TILE, device);"
    ) in text
    assert "run_exp(*constants.programs, inputs.x, exp, device);" in text


def test_a_long_function_is_divided() -> None:
    module = exp_module()
    programs = named([f"exp_{number}" for number in range(LONGEST)])
    # What programs compute differs, so that no part of the function is equal to another one.
    launch_all(module, [dataclasses.replace(p, purpose=p.name) for p in programs])
    text = one_line(emitted(module, ORIGIN).files["src/tiny.cpp"])
    assert "static support::DeviceTensor forward_part(const ForwardInputs& inputs, " in text
    called = re.search(r"support::DeviceTensor (\w+) = forward_part\(inputs, constants, dev", text)
    assert called is not None
    assert f"forward_part_2(constants, device, last_use({called[1]}))" in text


def test_layers_are_those_of_weights_and_constants_as_in_programs_of_the_library() -> None:
    digits = Path(__file__).parents[2] / "examples" / "digits" / "digits.mlir"
    for target in ("ttnn", "ttmetal"):
        compiled = compile_module(Source.read(str(digits)), CompileOptions("digits", target))
        text = compiled.files["src/digits.cpp"].partition("\nClassifyOutputs classify(")[2]
        comments = [line.strip() for line in text.splitlines() if line.startswith("    // ")]
        assert comments == ["// layer0", "// layer1", "// layer2"], target


def test_pages_of_rows_are_aligned_as_the_architecture_needs() -> None:
    rows = TensorPlacement((4, 9), DataType.UINT32, Layout.ROW_MAJOR)
    assert page_size(rows) == 64
    assert page_size(rows.with_(shape=(4, 3))) == 32
    (found,) = device_programs([device_entries(exp_module())[0].function])
    placements = (
        rows.with_(shape=(4, 3)),
        found.placements[1],
    )
    program = dataclasses.replace(found, placements=placements)
    paths = {("exp", kernel.name): "kernels/kernel.cpp" for kernel in program.program.kernels}
    args = {
        arch: kernel_entries([program], paths, default_system(arch).chip)[0]["compile_args"]
        for arch in ("wormhole_b0", "blackhole")
    }
    assert args == {"wormhole_b0": [2, 32], "blackhole": [2, 64]}
