"""Wrappers are taken off, and what is not supported is listed."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp

from tests.parsing.reading import T, body, failure, parse
from ttcodegen.dialects.operations.functions import CPU_CALL, is_cpu_function
from ttcodegen.dialects.ttcore.dialect import DeviceOp
from ttcodegen.foundation.diagnostics import Diagnostics, Source
from ttcodegen.ops.movement.layout import REFUSED as REASONS
from ttcodegen.parsing import parse_module
from ttcodegen.transforms.functions import is_entry

F = f"func.func @f(%a: {T}) -> {T} {{ return %a : {T} }}"

G = F.replace("@f", "@g")


def functions(module: ModuleOp) -> list[str]:
    """The names of what the module holds; nothing but functions."""
    names: list[str] = []
    for op in module.body.ops:
        assert isinstance(op, FuncOp)
        names.append(op.sym_name.data)
    return names


def test_functions_without_a_module() -> None:
    assert functions(parse(F)) == ["f"]


def test_wrappers_are_taken_off_and_attributes_merged() -> None:
    module = parse(
        "module @outer attributes {a = 1, b = 1} {\n"
        "  ttcore.device_module attributes {c = 1} {\n"
        "    builtin.module @inner attributes {b = 2} {\n"
        f"      {F}\n    }}\n  }}\n}}\n"
    )
    assert functions(module) == ["f"]
    assert module.sym_name == StringAttr("inner")
    assert {name: str(value) for name, value in module.attributes.items()} == {
        "a": "1 : i64",
        "b": "2 : i64",
    }


def test_wrappers_in_generic_form_and_of_the_old_dialect() -> None:
    for wrapper in (
        f'"ttcore.device_module"() ({{ module {{ {F} }} }}) : () -> ()',
        f"tt.device_module {{ module {{ {F} }} }}",
    ):
        assert functions(parse(wrapper)) == ["f"]


DEVICE = (
    "ttcore.device @default_device = <workerGrid = #ttcore.grid<8x8, (d0, d1) -> (0, d0, d1)>, "
    "l1Map = (d0, d1, d2)[s0] -> (0, d0, d1, d2 + s0), meshShape = , chipIds = [0]>"
)


def test_the_first_description_of_a_device_is_kept() -> None:
    inner = f"module {{\n{DEVICE}\n{F}\n}}"
    module = parse(f"module {{\n{DEVICE}\nttcore.device_module {{ {inner} }}\n}}")
    first, *rest = module.body.ops
    assert isinstance(first, DeviceOp)
    assert first.device_attr is not None
    device = first.device_attr.data
    assert (device.worker_grid.shape, device.mesh_shape, device.chip_ids) == ((8, 8), (), (0,))
    assert [type(op) for op in rest] == [FuncOp]


def test_older_descriptions_of_devices_are_read() -> None:
    device = "tt.device @default_device = <#tt.grid<8x8>, [0]>"
    first, *_ = parse(f"module {{\n{device}\n{F}\n}}").body.ops
    assert isinstance(first, DeviceOp)
    assert first.device_attr is not None
    assert first.device_attr.data.worker_grid.shape == (8, 8)


def test_older_descriptions_of_systems_are_reported_and_ignored() -> None:
    diagnostics = Diagnostics()
    text = (
        f"module attributes {{a = #ttcore.system_desc<[{{arch = <wormhole_b0>}}], [0]>}} {{ {F} }}"
    )
    assert functions(parse_module(Source("in.mlir", text), diagnostics)) == ["f"]
    (warning,) = diagnostics.warnings
    assert warning.message.startswith(
        "#ttcore.system_desc is ignored: the system description is malformed"
    )


def test_modules_side_by_side_make_one() -> None:
    module = parse(
        f"module {{ {F} }}\n{F.replace('@f', '@g')}\nmodule {{ {F.replace('@f', '@h')} }}"
    )
    assert functions(module) == ["f", "g", "h"]


def test_functions_of_equal_name_in_different_modules_get_numbers() -> None:
    caller = (
        f"func.func @main(%a: {T}) -> {T} {{ %0 = call @f(%a) : ({T}) -> {T} return %0 : {T} }}"
    )
    source = Source("in.mlir", f"module {{ {F} }}\nmodule {{ {F}\n{caller} }}")
    diagnostics = Diagnostics()
    module = parse_module(source, diagnostics)
    assert functions(module) == ["f", "f_1", "main"]
    (call,) = [op for op in module.walk() if isinstance(op, CallOp)]
    assert call.callee.string_value() == "f_1"
    (warning,) = diagnostics.warnings
    assert warning.message == "another module defines @f; this one is @f_1"


def test_a_module_defines_a_function_once() -> None:
    message = failure(f"{F}\n{F}")
    assert message.startswith("in.mlir:2:1: error: function @f is defined twice")
    assert "in.mlir:1:1: note: first defined here" in message


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (f"module @m {{ {F} }}", f"module @m {{ {G} }}", "module @m"),
        (f"module @f {{ {G} }}", F, "function @f"),
        (F, f"module @f {{ {G} }}", "module @f"),
    ],
)
@pytest.mark.parametrize("around", ["{0}\n{1}", "module @outer {{\n{0}\n{1}\n}}"])
def test_a_module_defines_a_symbol_once(first: str, second: str, found: str, around: str) -> None:
    message = failure(around.format(first, second))
    line = 2 + around.index("{0}") // len("module @outer")
    assert message.startswith(f"in.mlir:{line}:1: error: {found} is defined twice")
    assert f"in.mlir:{line - 1}:1: note: first defined here" in message


def test_modules_inside_different_modules_may_have_one_name() -> None:
    inner = "ttcore.device_module {{ builtin.module @m {{ {} }} }}"
    assert functions(parse(f"module {{ {inner.format(F)}\n{inner.format(G)} }}")) == ["f", "g"]


def test_functions_for_the_cpu_stand_beside_those_of_the_device() -> None:
    call = f"%0 = func.call @f(%a) : ({T}) -> {T}\nreturn %0 : {T}"
    main = f"func.func @main(%a: {T}) -> {T} {{ {call} }}\nfunc.func private @f({T}) -> {T}"
    device = f"ttcore.device_module {{ builtin.module {{ {main} }} }}"
    module = parse(f"module {{ {device}\nttcore.cpu_module {{ builtin.module {{ {F} }} }} }}")
    assert functions(module) == ["main", "f"]
    main_function, cpu_function = (op for op in module.ops if isinstance(op, FuncOp))
    assert not is_cpu_function(main_function)
    assert is_cpu_function(cpu_function)
    assert not is_entry(cpu_function)
    (call_op,) = [op for op in module.walk() if isinstance(op, CallOp)]
    assert CPU_CALL in call_op.attributes


def test_older_tools_declare_functions_for_the_cpu_under_another_name() -> None:
    call = f"%0 = func.call @f_decl(%a) : ({T}) -> {T}\nreturn %0 : {T}"
    main = f"func.func @main(%a: {T}) -> {T} {{ {call} }}\nfunc.func private @f_decl({T}) -> {T}"
    module = parse(f"module {{ {main}\nttcore.cpu_module {{ builtin.module {{ {F} }} }} }}")
    assert functions(module) == ["main", "f"]
    (call_op,) = [op for op in module.walk() if isinstance(op, CallOp)]
    assert call_op.callee.string_value() == "f"


def test_lowered_functions_for_the_cpu_are_refused() -> None:
    inner = 'builtin.module {\n"llvm.func"() : () -> ()\n}'
    message = failure(f"module {{\nttcore.cpu_module {{ {inner} }} }}")
    assert message.startswith("in.mlir:3:1: error: a ttcore.cpu_module should contain")


def test_all_unknown_operations_are_listed_at_once() -> None:
    message = failure(
        body(
            f'%0 = "ttir.foo"(%a) : ({T}) -> {T}',
            f'%1 = "d2m.add"(%a, %a) : ({T}, {T}) -> {T}',
            f'%2 = "ttir.foo"(%a) : ({T}) -> {T}',
        )
    )
    errors = [line for line in message.splitlines() if ": error: " in line]
    assert errors == [
        "in.mlir:2:8: error: unknown operation 'ttir.foo' (2 times)",
        "in.mlir:3:8: error: unknown operation 'd2m.add'",
    ]
    assert message.splitlines()[-1].endswith("as it was before its lowering to D2M")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("begin_trace_capture", "--trace captures one"),
        ("execute_trace", "--trace captures one"),
    ],
)
def test_calls_of_ttnn_that_no_program_has_say_what_to_do(name: str, remedy: str) -> None:
    message = failure(body(f'%0 = "ttnn.{name}"(%a) : ({T}) -> {T}'))
    assert f"in.mlir:2:8: error: 'ttnn.{name}' is not supported" in message
    assert remedy in message


def test_refused_operations_are_listed_with_their_reasons() -> None:
    reason = REASONS["ttnn_metal_layout_cast"]
    message = failure(
        body(
            f'%0 = "ttir.foo"(%a) : ({T}) -> {T}',
            f'%1 = "ttir.ttnn_metal_layout_cast"(%a) <{{axis = 1 : si32}}> : ({T}) -> {T}',
            f'%2 = "ttir.bar"(%a, %a) : ({T}, {T}) -> {T}',
            f'%3 = "ttir.ttnn_metal_layout_cast"(%a) : ({T}) -> {T}',
        )
    )
    errors = [line for line in message.splitlines() if ": error: " in line]
    assert errors == [
        "in.mlir:2:8: error: unknown operation 'ttir.foo'",
        f"in.mlir:3:8: error: 'ttir.ttnn_metal_layout_cast' is not supported: {reason} (2 times)",
        "in.mlir:4:8: error: unknown operation 'ttir.bar'",
    ]


def test_a_refused_operation_in_a_form_of_its_own_gives_its_reason() -> None:
    message = failure(
        body(
            f"%0 = ttir.ttnn_metal_layout_cast %a : {T} -> {T}",
            f'%1 = "ttir.foo"(%0) : ({T}) -> {T}',
        )
    )
    errors = [line for line in message.splitlines() if ": error: " in line]
    assert errors == [
        "in.mlir:2:8: error: 'ttir.ttnn_metal_layout_cast' is not supported: it describes memory "
        "that a later stage of compilation has allocated",
        "in.mlir:3:8: error: unknown operation 'ttir.foo'",
    ]


def test_shards_of_one_device_are_the_tensor() -> None:
    message = failure(
        body(
            f'%0 = "ttir.mesh_shard"(%a) <{{shard_shape = array<i64: 2, 1>}}> : ({T}) -> {T}',
            f'%1 = "ttir.mesh_shard"(%a) <{{shard_shape = array<i64: 1, 1>}}> : ({T}) -> {T}',
        )
    )
    errors = [line for line in message.splitlines() if ": error: " in line]
    assert errors == [
        "in.mlir:2:8: error: this 'ttir.mesh_shard' is not supported: it divides a tensor among "
        "chips, and the module names no mesh of rows and columns of several: ttcore.meshes",
    ]


def test_a_composite_calls_its_decomposition() -> None:
    module = parse(
        f"func.func @main(%a: {T}) -> {T} {{\n"
        f'  %0 = "ttcore.composite"(%a) <{{composite_name = "twice", decomposition = @twice, '
        f"composite_attributes = {{}}}}> : ({T}) -> {T}\n"
        f"  return %0 : {T}\n}}\n"
        f"func.func private @twice(%x: {T}) -> {T} {{\n"
        f'  %1 = "ttir.add"(%x, %x) : ({T}, {T}) -> {T}\n'
        f"  return %1 : {T}\n}}\n"
    )
    (call,) = [op for op in module.walk() if isinstance(op, CallOp)]
    assert call.callee.string_value() == "twice"


def test_all_unknown_operations_in_forms_of_their_own_are_listed_at_once() -> None:
    message = failure(
        body(
            f"%0 = stablehlo.add %a, %a : {T}",
            f'%1 = "ttir.add"(%0, %0) : ({T}, {T}) -> {T}',
            f"%2 = chlo.erf %1 : {T}",
            f"%3 = stablehlo.add %2, %a : {T}",
            f'%4 = "ttir.foo"(%a) : ({T}) -> {T}',
            f"%5 = ttir.empty() : {T}",
        )
    )
    errors = [line for line in message.splitlines() if ": error: " in line]
    assert errors == [
        "in.mlir:2:8: error: unknown operation 'stablehlo.add' (2 times)",
        "in.mlir:4:8: error: unknown operation 'chlo.erf'",
        "in.mlir:6:8: error: unknown operation 'ttir.foo'",
    ]


def test_a_single_unknown_word_is_an_unknown_operation() -> None:
    assert failure("hello world").startswith("in.mlir:1:1: error: unknown operation 'hello'")


def test_types_without_a_device_tensor_are_listed() -> None:
    message = failure(
        "func.func @f(%a: tensor<?x2xf32>, %b: tensor<*xf32>, %c: i32, %d: tensor<2xf8E4M3FN>, "
        "%e: tensor<2x!quant.any<i8:f32>>, %f: i32, %g: tensor<4294967296xf32>) { return }"
    )
    errors = [line for line in message.splitlines() if ": error: " in line]
    assert errors == [
        "in.mlir:1:14: error: tensors of unknown size are not supported: tensor<?x2xf32>",
        "in.mlir:1:35: error: tensors of unknown rank are not supported: tensor<*xf32>",
        "in.mlir:1:54: error: values of type i32 are not supported (2 times)",
        "in.mlir:1:63: error: elements of type f8E4M3FN are not supported",
        "in.mlir:1:87: error: elements of type !quant.any<i8:f32> are not supported",
        "in.mlir:1:130: error: tensors with a dimension of 2^32 or more are not supported: "
        "tensor<4294967296xf32>",
    ]


def test_functions_are_one_block() -> None:
    assert "control flow between blocks is not supported" in failure(
        body('"cf.br"()[^next] : () -> ()', "^next:")
    )
    assert "a function without a body is not supported" in failure(
        f"func.func private @f({T}) -> {T}"
    )
