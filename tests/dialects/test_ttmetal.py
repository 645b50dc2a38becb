"""The `ttmetal` dialect: programs of all years read back, and what its verifiers refuse."""

from __future__ import annotations

import pytest

from tests.dialects.texts import assert_round_trip, parse, refusal, text_of
from ttcodegen.dialects.operations.verification import verify_module
from ttcodegen.dialects.ttcore.dialect import set_system
from ttcodegen.dialects.ttcore.tile import NocIndex
from ttcodegen.dialects.ttmetal.attributes import ComputeConfigAttr, NocConfigAttr
from ttcodegen.dialects.ttmetal.dialect import EnqueueProgramOp
from ttcodegen.foundation.diagnostics import CompileError
from ttcodegen.systems.cards import default_system

L1 = "memref<1x1x2x4x!ttcore.tile<32x32, f32>, #ttcore.shard<16384x4096, 1>, #l1>"
CB = "memref<2x4x!ttcore.tile<32x32, f32>, #ttcore.cb_layout<16384x4096, 2>, #l1>"
HOST = "memref<64x128xf32>"
RANGE = "#ttmetal.core_range<0x0, 1x1>"
CONFIGS = {
    "reader": f"#ttmetal.noc_config<@reader, {RANGE}, #ttmetal.kernel_args<rt_args = "
    "[<buffer_address[0]>] ct_args = [<cb_port[2]>]>, dm_core = 1, noc0>",
    "writer": f"#ttmetal.noc_config<@writer, {RANGE}, #ttmetal.kernel_args<>, dm_core = 0, noc1>",
    "compute": f"#ttmetal.compute_config<@compute, {RANGE}, #ttmetal.kernel_args<ct_args = "
    "[<cb_port[2]>, <cb_port[3]>]>, hifi4, true, false, false, [fp32, default]>",
}


def program(configs: dict[str, str] = CONFIGS, ports: str = "0, 1", segments: str = "2, 2") -> str:
    """A module of today's spelling: a host function and three kernels."""
    kernels = "\n".join(
        f"  func.func private @{name}() attributes "
        f"{{ttkernel.thread = #ttkernel.thread<{thread}>}} {{\n    func.return\n  }}"
        for name, thread in (("reader", "noc"), ("writer", "noc"), ("compute", "compute"))
    )
    return f"""#l1 = #ttcore.memory_space<l1>
module {{
  func.func @main(%x: {HOST}, %out: {HOST}) {{
    %0 = "ttmetal.create_buffer"() <{{address = 1024 : i64}}> : () -> {L1}
    %1 = "ttmetal.create_buffer"() <{{address = 5120 : i64}}> : () -> {L1}
    %2 = "ttmetal.create_buffer"() <{{address = 9216 : i64}}> : () -> {CB}
    %3 = "ttmetal.create_buffer"() <{{address = 13312 : i64}}> : () -> {CB}
    "ttmetal.enqueue_write_buffer"(%x, %0) : ({HOST}, {L1}) -> ()
    "ttmetal.enqueue_program"(%0, %1, %2, %3) <{{cb_ports = array<i64: {ports}>,
        kernelConfigs = [{", ".join(configs.values())}],
        operandSegmentSizes = array<i32: {segments}>}}> : ({L1}, {L1}, {CB}, {CB}) -> ()
    "ttmetal.deallocate_buffer"(%0) : ({L1}) -> ()
    "ttmetal.enqueue_read_buffer"(%1, %out) : ({L1}, {HOST}) -> ()
    "ttmetal.finish"() : () -> ()
    func.return
  }}
{kernels}
}}
"""


def test_programs_read_back() -> None:
    module = parse(program())
    assert_round_trip(module)
    set_system(module, default_system("wormhole_b0"))
    verify_module(module)
    (op,) = [op for op in module.walk() if isinstance(op, EnqueueProgramOp)]
    assert op.circular_buffers == 2
    assert op.kernel_configs is not None
    reader, _, compute = op.kernel_configs.data
    assert isinstance(reader, NocConfigAttr)
    assert isinstance(compute, ComputeConfigAttr)
    assert (reader.data.processor, reader.data.noc) == (1, NocIndex.NOC0)
    assert compute.data.fp32_destination
    assert [argument.operand_index for argument in compute.data.place.arguments.all] == [2, 3]


def test_configurations_of_2025_are_read() -> None:
    place = f"@k, {RANGE}, #ttmetal.kernel_args<>"
    older = f"#ttmetal.compute_config<{place}, lofi, false, true, [default]>"
    today = "lofi, false, false, true, [default]>"
    module = parse(
        f"module attributes {{a = {older}, b = #ttmetal.noc_config<{place}, noc0>}} {{}}"
    )
    text = text_of(module)
    assert today in text
    assert f"#ttmetal.noc_config<{place}, dm_core = 1, noc0>" in text
    assert_round_trip(module)


OTHER_OPS = f"""
func.func @f() {{
  %0 = "ttmetal.create_global_semaphore"() <{{address = 64 : i64, core_range = {RANGE},
      initial_value = 1 : ui32}}> : () -> !ttmetal.global_semaphore
  "ttmetal.reset_global_semaphore"(%0) <{{value = 0 : ui32}}>
      : (!ttmetal.global_semaphore) -> ()
  %1 = "ttmetal.create_local_semaphore"() : () -> !ttmetal.local_semaphore
  %2 = "ttmetal.create_buffer"() : () -> tensor<4x4xf32>
  %3 = "ttmetal.view"(%2) : (tensor<4x4xf32>) -> tensor<16xf32>
  %4 = "ttmetal.enqueue_write_buffer"(%2) <{{value = dense<0.0> : tensor<4x4xf32>}}>
      : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return
}}
"""


def test_other_ops_read_back() -> None:
    assert_round_trip(parse(OTHER_OPS))


def test_programs_of_2024_are_read() -> None:
    """The listing of a product of two tensors, as the introductions print it."""
    cb = "!ttkernel.cb<0, {}, memref<64x128xf32, #l1_>>"
    arguments = ", ".join(f"%arg{i + 2}: {cb.format(i)}" for i in range(3))
    kernels = ", ".join(
        f'{{\n^bb0({arguments}):\n  {op}\n  "ttkernel.return"() : () -> ()\n}}'
        for op in (
            f'"ttkernel.cb_push_back"(%arg2) : ({cb.format(0)}) -> ()',
            f'"ttkernel.cb_push_back"(%arg3) : ({cb.format(1)}) -> ()',
            '"ttkernel.builtin"(%arg2, %arg3, %arg4) <{kind = @eltwise, op = @mulitply}> : '
            f"({', '.join(cb.format(i) for i in range(3))}) -> ()",
        )
    )
    placed, host = "tensor<64x128xf32, #layout1>", "tensor<64x128xf32, #layout>"
    text = f"""
#l1_ = #tt.memory_space<l1>
#system = #tt.memory_space<system>
#layout = #tt.layout<(d0, d1) -> (d0, d1), undef, <1x1>, memref<64x128xf32, #system>>
#layout1 = #tt.layout<(d0, d1) -> (d0, d1), undef, <1x1>, memref<64x128xf32, #l1_>>
module attributes {{tt.device = #tt.device<#tt.grid<8x8, (d0, d1) -> (0, d0, d1)>, [0]>}} {{
  func.func @forward(%arg0: {host}, %arg1: {host}) -> {host}
      attributes {{tt.arg_alloc = [#tt.arg_alloc<0, 32768, system>]}} {{
    %0 = "ttmetal.alloc"() <{{address = 262144 : i64, memory_space = #l1_, size = 32768 : i64}}>
        : () -> {placed}
    %1 = "ttmetal.host_write"(%arg0, %0) : ({host}, {placed}) -> {placed}
    %5 = "ttmetal.dispatch"(%1, %1, %0) <{{core_ranges = [#ttmetal.core_range<0x0, 1x1>,
        #ttmetal.core_range<0x0, 1x1>, #ttmetal.core_range<0x0, 1x1>],
        operandSegmentSizes = array<i32: 2, 1>, operand_cb_port_mapping = [0, 1, 2], threadTypes =
        [#ttkernel.thread<noc0>, #ttkernel.thread<noc1>, #ttkernel.thread<tensix>]}}> ({kernels})
        : ({placed}, {placed}, {placed}) -> {placed}
    "ttmetal.dealloc"(%0) : ({placed}) -> ()
    %6 = "ttmetal.alloc"() <{{address = 0 : i64, memory_space = #system, size = 32768 : i64}}>
        : () -> {host}
    %7 = "ttmetal.host_read"(%5, %6) : ({placed}, {host}) -> {host}
    return %7 : {host}
  }}
}}
"""
    module = parse(text)
    assert_round_trip(module)
    printed = text_of(module)
    assert "ttcore.arg_alloc = [#ttcore.arg_alloc<0, 32768, system>]" in printed
    assert "ttkernel.builtin(%arg2_2, %arg3_2, %arg4_2, @eltwise, @mulitply)" in printed
    threads = "[#ttkernel.thread<noc0>, #ttkernel.thread<noc1>, #ttkernel.thread<compute>]"
    assert threads in printed
    for port in range(3):
        assert printed.count(f"!ttkernel.cb<0, {port}, memref<64x128xf32, ") >= 4


REGIONS = f"""
#l1 = #ttcore.memory_space<l1>
func.func @f(%a: {L1}, %b: {L1}) {{
  "ttmetal.enqueue_program"(%a, %b) <{{core_ranges = [{RANGE}, {RANGE}], kernelConfigs =
      [#ttkernel.noc_config<noc0>, #ttkernel.tensix_config<hifi4, false, true, [default]>],
      operandSegmentSizes = array<i32: 1, 1>}}> ({{
  ^bb0(%x: !ttkernel.cb<8, f32>):
    ttkernel.noc_async_read_barrier() : () -> ()
    ttkernel.return() : () -> ()
  }}, {{
  ^bb0(%x: !ttkernel.cb<8, f32>):
    ttkernel.tile_regs_acquire() : () -> ()
    ttkernel.return() : () -> ()
  }}) : ({L1}, {L1}) -> ()
  return
}}
"""


def test_kernels_were_regions_until_2025() -> None:
    assert_round_trip(parse(REGIONS))
    ethernet = "#ttkernel.ethernet_config<sender, noc1>"
    assert_round_trip(parse(REGIONS.replace("#ttkernel.noc_config<noc0>", ethernet)))


def test_regions_hold_what_their_thread_runs() -> None:
    compute = "#ttkernel.tensix_config<lofi, true, true, []>"
    message = refusal(REGIONS.replace("#ttkernel.noc_config<noc0>", compute))
    assert "a kernel of the thread compute has the op ttkernel.noc_async_read_barrier" in message
    only_one = REGIONS.replace("#ttkernel.noc_config<noc0>, ", "")
    assert "has 2 kernels, but 1 threads" in refusal(only_one)


def changed(name: str, old: str, new: str) -> dict[str, str]:
    assert old in CONFIGS[name]
    return CONFIGS | {name: CONFIGS[name].replace(old, new)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (program(ports="1, 1"), "two circular buffers have the same port"),
        (program(ports="0, 32"), "port 32 of a circular buffer is not one of 0 to 31"),
        (program(ports="0"), "has 2 circular buffers, but 1 ports"),
        (program(segments="3, 2"), "has 4 operands, but its segments 5"),
        (program(changed("reader", "<buffer_address[0]>", "<buffer_address[4]>")), "operand 4"),
        (
            program(changed("writer", "dm_core = 0", "dm_core = 1")),
            "@reader and @writer run on the same data-movement processor 1 of a core",
        ),
        (program(CONFIGS | {"compute": "#ttmetal.math_fidelity<lofi>"}), "a kernel is a #ttmetal."),
        (program().replace(f"({L1}, {HOST})", f"({L1}, {L1})").replace("(%1, %out)", "(%1, %0)"),
         "the output is in system or mmio memory, not in l1"),
        (program().replace(f"(%x, %0) : ({HOST}, {L1})", f"(%1, %0) : ({L1}, {L1})"),
         "the input is in system or mmio memory, not in l1"),
    ],
)  # fmt: skip
def test_malformed_programs_are_refused_at_their_place(text: str, expected: str) -> None:
    message = refusal(text)
    assert expected in message
    assert message.startswith("in.mlir:")


def test_kernels_have_to_be_in_the_module() -> None:
    message = refusal(program(changed("writer", "@writer", "@nobody")))
    assert "ttmetal.enqueue_program: there is no kernel @nobody" in message
    assert message.startswith("in.mlir:9:5: error: ")


def test_kernels_have_to_be_of_the_thread() -> None:
    message = refusal(program(changed("writer", "@writer", "@compute")))
    assert "@compute is a kernel of the thread compute, not of the thread noc" in message


def test_functions_are_no_kernels() -> None:
    assert "@main is no kernel" in refusal(program(changed("writer", "@writer", "@main")))


def test_cores_have_to_be_on_the_chip() -> None:
    configs = changed("compute", "core_range<0x0, 1x1>", "core_range<7x0, 2x8>")
    module = parse(program(configs))
    verify_module(module)
    set_system(module, default_system("wormhole_b0"))
    with pytest.raises(CompileError, match="range<7x0, 2x8> is not on the chip, which has 8x8 "):
        verify_module(module)


def test_all_faults_of_a_program_are_listed() -> None:
    configs = changed("compute", "@compute", "@a") | {
        "writer": CONFIGS["writer"].replace("@writer", "@b")
    }
    message = refusal(program(configs))
    assert "there is no kernel @b; there is no kernel @a" in message


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (f'%b = "ttmetal.create_buffer"() <{{address = -1 : i64}}> : () -> {L1}', "'address' is"),
        (
            f'%b = "ttmetal.alloc"() <{{address = 1 : i64, size = -1 : i64, '
            f"memory_space = #ttcore.memory_space<l1>}}> : () -> {L1}",
            "'size' is a number of 64 bits without a sign, found -1",
        ),
        (
            '%s = "ttmetal.create_global_semaphore"() <{address = -4 : i64, core_range = '
            f"{RANGE}}}> : () -> !ttmetal.global_semaphore",
            "'address' is a number",
        ),
        (
            '%s = "ttmetal.create_local_semaphore"() <{initial_value = -1 : i32}> : () -> '
            "!ttmetal.local_semaphore",
            "'initial_value' is a number",
        ),
        ('%v = "ttmetal.view"(%n) : (f32) -> f32', "the input is a tensor or memref"),
        (
            '%m = "ttmetal.mesh_shard"(%x) <{shard_type = 0, shard_direction = 0, shard_shape = '
            f"array<i64: 0>, shard_dims = array<i64: 0>}}> : ({HOST}) -> {HOST}",
            "'shard_shape' is positive",
        ),
    ],
)
def test_numbers_without_a_meaning_are_refused(op: str, expected: str) -> None:
    text = f"#l1 = #ttcore.memory_space<l1>\nfunc.func @f(%x: {HOST}, %n: f32) {{\n  {op}\n"
    assert expected in refusal(text + "  func.return\n}\n")


@pytest.mark.parametrize(
    ("entry", "expected"),
    [(0, ""), (1, "but there are 1"), (-1, "but there are 1"), (2, "but there are 1")],
)
def test_entries_of_the_fabric_are_there(entry: int, expected: str) -> None:
    config = CONFIGS["reader"].replace("noc0>", f"noc0, fabric_config_index = {entry}>")
    text = program({**CONFIGS, "reader": config})
    fabric = (
        "#ttcore.fabric_connection_config<noc_index = noc0, topology = ring, cluster_axis = 0, "
        "routing_mode = bidir_line_mesh, num_links = 1>"
    )
    given = "fabricConnectionConfigs = [{}], kernelConfigs"
    if expected:
        assert expected in refusal(text.replace("kernelConfigs", given.format(fabric)))
        assert "but there are 0" in refusal(text)
        return
    parse(text.replace("kernelConfigs", given.format(fabric)))
    other = fabric.replace("noc0", "noc1")
    message = refusal(text.replace("kernelConfigs", given.format(other)))
    assert "runs on noc0, and that on noc1" in message


@pytest.mark.parametrize("index", [-1, 4, 10**9])
def test_arguments_are_taken_from_operands_that_there_are(index: int) -> None:
    message = refusal(
        program({**CONFIGS, "reader": CONFIGS["reader"].replace("s[0]", f"s[{index}]")})
    )
    assert f"takes an argument from operand {index}, but there are 4" in message
