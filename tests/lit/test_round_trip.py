"""Round trips of each op of each dialect through its printed form."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    f32,
    i32,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region

from ttcodegen.cli.opt import main
from ttcodegen.dialects.core.datatypes import DataType, elements
from ttcodegen.dialects.operations import attribute_kinds as kinds
from ttcodegen.dialects.operations.compute_config import COMPUTE_CONFIG, ComputeConfig, MathFidelity
from ttcodegen.dialects.ttcore.shards import CoreRange, Layout, Orientation, Shards
from ttcodegen.dialects.ttnn.placement import (
    PLACEMENT,
    LayoutTextError,
    TensorPlacement,
    layout_text,
    parse_layout_text,
    placed,
    placed_type,
)
from ttcodegen.dialects.ttnn.program_configs import (
    SDPA,
    Conv2dConfig,
    CoreGrid,
    FusedActivation,
    LayerNormSharded,
    MatmulMultiCast1D,
    ProgramConfig,
    Word,
)
from ttcodegen.foundation.diagnostics import Source
from ttcodegen.ops.collectives.reference import CHIP_GROUPS
from ttcodegen.ops.convolution.device_windows import ConvolutionLayout
from ttcodegen.ops.convolution.general import CONVOLUTION_LAYOUT
from ttcodegen.ops.convolution.pooling_general import POOLING_METHOD
from ttcodegen.ops.convolution.sliding_window import FlattenedImage
from ttcodegen.ops.core.definition import AttributeSpec, Definition
from ttcodegen.ops.dialects import ttir_op_classes, ttnn_op_classes
from ttcodegen.parsing import parse_module
from ttcodegen.transforms.module_text import module_text

SAMPLES: dict[int, Any] = {
    id(kinds.INTEGER): -3,
    id(kinds.BOOLEAN): True,
    id(kinds.NUMBER): 0.1,
    id(kinds.STRING): 'a "quoted" \\ text',
    id(kinds.INTEGERS): [1, -(2**40), 3],
    id(kinds.NUMBERS): [1, 0.25],
    id(kinds.ENUMERATOR): "word",
    id(kinds.DATA_TYPE): DataType.BFLOAT8_B,
    id(kinds.BOOLEANS): [True, False],
    id(PLACEMENT): TensorPlacement((1, 1, 64, 40), DataType.BFLOAT16, Layout.ROW_MAJOR),
    id(CHIP_GROUPS): [[0, 1], [2, 3]],
    id(CONVOLUTION_LAYOUT): ConvolutionLayout(0, 1, (2, 3), 3, 2, (0, 1), 0, 3, (1, 2)),
    id(POOLING_METHOD): "average",
    id(COMPUTE_CONFIG): ComputeConfig(MathFidelity.HIFI2, fp32_dest_acc_en=True),
}
PLACEMENTS = (
    TensorPlacement((3, 40, 50), DataType.BFLOAT16),
    TensorPlacement((2, 3, 5, 7), DataType.UINT32, Layout.ROW_MAJOR),
    TensorPlacement((), DataType.FLOAT32),
    TensorPlacement((33,), DataType.BFLOAT8_B),
    TensorPlacement((4, 0, 5), DataType.INT32, Layout.ROW_MAJOR),
    TensorPlacement((1, 2, 3), DataType.UINT8, Layout.ROW_MAJOR).on_host(),
    TensorPlacement((1, 4, 32, 64), DataType.UINT16).with_(buffer_type="l1"),
    TensorPlacement((1, 1, 320, 64), DataType.BFLOAT16).height_sharded(
        Shards.by_rows(10, (32, 64))
    ),
    TensorPlacement((1, 1, 96, 64), DataType.FLOAT32, Layout.ROW_MAJOR).height_sharded(
        Shards.by_rows(3, (32, 64))
    ),
    TensorPlacement((1, 1, 512, 64), DataType.BFLOAT16).height_sharded(
        Shards.by_rows(16, (32, 64), 7)
    ),
    TensorPlacement((32, 1000), DataType.BFLOAT16).sharded(
        "width_sharded", Shards((32, 128), (CoreRange(1, 2, 4, 2), CoreRange(0, 3, 3, 3)))
    ),
    TensorPlacement((2, 128, 96), DataType.BFLOAT8_B).sharded(
        "block_sharded", Shards((64, 32), (CoreRange(0, 0, 2, 3),))
    ),
    TensorPlacement((128, 96), DataType.FLOAT32).sharded(
        "block_sharded",
        Shards((32, 64), (CoreRange(2, 1, 5, 2),), Orientation.COL_MAJOR),
    ),
    TensorPlacement((1024, 1280), DataType.BFLOAT16).sharded(
        "width_sharded", Shards((1024, 160), (CoreRange(0, 0, 7, 0),)), "dram"
    ),
)


GRID = CoreGrid(8, 4)
RELU = FusedActivation("relu", (1.5,))
CONFIGS: tuple[ProgramConfig, ...] = (
    MatmulMultiCast1D(GRID, 2, 1, 4, 8, 4, 8, 4, fused_activation=RELU),
    LayerNormSharded(GRID, 2, 1, 4),
    SDPA(GRID, 64, 128, exp_approx_mode=False),
    Conv2dConfig(Word("bf16"), RELU, shard_layout=Word("height_sharded"), act_block_h_override=64),
)
"""Configurations of programs, one of each kind that ops take."""


def module_of(op: Operation, block: Block) -> ModuleOp:
    """A module with a function that holds an op, whose operands are arguments of the block."""
    block.add_op(op)
    block.add_op(ReturnOp(*op.results))
    types = [argument.type for argument in block.args], [result.type for result in op.results]
    return ModuleOp([FuncOp("f", types, Region(block))])


def sample_attribute(spec: AttributeSpec) -> Attribute:
    """An attribute of the kind that an op wants."""
    if spec.kind is kinds.CONSTANT:
        return elements(f32, (2,), b"\0\0\xc0\x7f\0\0\x80\xff")
    if id(spec.kind) in SAMPLES:
        return spec.kind.encode(SAMPLES[id(spec.kind)])
    # A kind of the op's own.
    for value in (spec.default, FlattenedImage(1, 8, 8), *CONFIGS, *SAMPLES.values()):
        try:
            attribute = spec.kind.encode(value)
            spec.kind.decode(attribute)
        except (TypeError, ValueError, KeyError, AttributeError):
            continue
        return attribute
    raise AssertionError(f"there is no sample of {spec}")


def sample(definition: Definition, op_class: type[Operation], number: int) -> ModuleOp:
    """A module with one op: every operand, optional ones too, and every attribute."""
    placements = PLACEMENTS[number % len(PLACEMENTS) :] + PLACEMENTS
    sizes = [2 if spec.count == "variadic" else 1 for spec in definition.operands]
    types: list[Attribute] = [placed_type(placements[i % 10]) for i in range(sum(sizes))]
    if definition.dialect == "ttir":
        types = [plain(type_) for type_ in types]
    block = Block(arg_types=types)
    properties: dict[str, Attribute] = {"operandSegmentSizes": DenseArrayBase.from_list(i32, sizes)}
    for spec in definition.attributes:
        properties[spec.name] = sample_attribute(spec)
    results = max(definition.results, 2 if definition.results < 0 else 0)
    result_types = (types or [plain(placed_type(PLACEMENTS[0]))])[:1] * results
    op = op_class.create(
        operands=block.args,
        result_types=result_types,
        properties=properties,
        attributes={"note": StringAttr("kept")},
    )
    return module_of(op, block)


def plain(type_: Any) -> Attribute:
    from xdsl.dialects.builtin import TensorType

    return TensorType(type_.element_type, type_.get_shape())


def check(module: ModuleOp) -> None:
    """Text, module and text again agree, in both forms and with locations."""
    for options in ({}, {"generic": True}, {"locations": True}):
        text = module_text(module, **options)
        again = parse_module(Source("again.mlir", text))
        assert again.is_structurally_equivalent(module), text
        assert module_text(again, **options) == text


def catalogue() -> Iterator[tuple[str, type[Operation]]]:
    for classes in (ttir_op_classes(), ttnn_op_classes()):
        for op_class in classes.values():
            yield op_class.name, op_class


OPS = [pytest.param(*row, id=row[0]) for row in catalogue()]


@pytest.mark.parametrize(("name", "op_class"), OPS)
def test_ops_of_the_catalogue(name: str, op_class: Any) -> None:
    check(sample(op_class.definition, op_class, len(name)))


def random_placements() -> st.SearchStrategy[TensorPlacement]:
    """Tensors on device and host, of any rank and data type; block floats are tiles."""
    places = st.builds(
        TensorPlacement,
        st.lists(st.integers(0, 70), max_size=6).map(tuple),
        st.sampled_from(DataType),
        st.sampled_from(Layout),
        st.sampled_from(["dram", "l1"]),
    )
    possible = places.filter(lambda p: p.layout is Layout.TILE or not p.data_type.is_block_float)
    return st.one_of(possible, possible.map(TensorPlacement.on_host))


@given(random_placements())
@settings(deadline=None)
def test_random_layouts(placement: TensorPlacement) -> None:
    text = layout_text(placement)
    found, end = parse_layout_text(text)
    assert end == len(text)
    assert placed(found, placement.shape) == placement
    assert layout_text(found) == text


@given(st.text("<>()d01x!#.,-> *tilemrfb32:", max_size=80))
def test_text_that_is_no_layout_is_refused(text: str) -> None:
    whole = layout_text(PLACEMENTS[0])
    for candidate in (text, whole[: len(whole) // 2] + text):
        with pytest.raises(LayoutTextError):
            parse_layout_text(candidate)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_layouts(placement: TensorPlacement) -> None:
    type_ = placed_type(placement)
    block = Block(arg_types=[type_])
    identity = ttnn_op_classes()["relu"].create(operands=block.args, result_types=[type_])
    module = module_of(identity, block)
    check(module)
    again = parse_module(Source("again.mlir", module_text(module)))
    function = next(iter(again.ops))
    assert isinstance(function, FuncOp)
    assert function.function_type.inputs.data[0] == type_


@pytest.mark.parametrize(
    "attribute",
    [
        FloatAttr(0.1, f32),
        FloatAttr(float("nan"), f32),
        FloatAttr(-0.0, f32),
        FloatAttr(3.4028234663852886e38, f32),
        IntegerAttr(-(2**31), i32),
        ArrayAttr([StringAttr('\n\t"\\é')]),
        elements(f32, (1000, 1000), b"\0\0\x80\x3f"),
    ],
)
def test_attributes(attribute: Attribute) -> None:
    block = Block()
    op = ttir_op_classes()["constant"].create(
        result_types=[plain(placed_type(PLACEMENTS[0]))], properties={"value": attribute}
    )
    check(module_of(op, block))


@pytest.mark.parametrize(
    "element", ["f32", "bf16", "f64", "f16", "i1", "i8", "ui16", "si32", "i64", "ui64"]
)
@pytest.mark.parametrize("count", [1, 7, 100, 101, 1003])
def test_constants_of_any_size(element: str, count: int) -> None:
    values = ["true", "false", "true"] if element == "i1" else ["1", "3", "7"]
    if element.endswith(("f16", "f32", "f64")):
        values = ["1.0", "-2.5", "0.1"]
    text = ", ".join(values[i % 3] for i in range(count))
    type_ = f"tensor<{count}x{element}>"
    module = parse_module(
        Source(
            "in.mlir",
            f'"ttir.constant"() <{{value = dense<[{text}]> : {type_}}}> : () -> {type_}',
        )
    )
    check(module)
    assert ('"0x' in module_text(module)) == (count > 100)
    again = parse_module(Source("again.mlir", module_text(module)))
    first, second = (next(iter(m.ops)).properties["value"] for m in (module, again))
    assert isinstance(first, DenseIntOrFPElementsAttr)
    assert isinstance(second, DenseIntOrFPElementsAttr)
    assert first.data.data == second.data.data


def test_examples_in_every_stage(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module of an example reads back after each pass."""
    from tests.conftest import ROOT
    from ttcodegen.ops.dialects import load_dialects
    from ttcodegen.transforms.registry import passes_of

    source = Source.read(str(ROOT / "examples" / "cnn" / "cnn.mlir"))
    module, context = parse_module(source), load_dialects()
    for pass_ in passes_of("ttir-to-emitc-pipeline"):
        pass_.apply(context, module)
        check(module)


def test_opt_prints_what_it_reads(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.conftest import ROOT

    example = str(ROOT / "examples" / "transformer" / "transformer.mlir")
    assert main(["--ttir-to-emitc-pipeline", example]) == 0
    text = capsys.readouterr().out
    path = tmp_path / "transformer.mlir"
    path.write_text(text)
    assert main([str(path)]) == 0
    assert capsys.readouterr().out == text


def test_upstream_reads_the_emitc_of_an_example(tmp_path) -> None:
    oracle = shutil.which("mlir-opt") or shutil.which("iree-opt")
    if oracle is None:
        pytest.skip("there is no mlir-opt on this machine")
    from tests.conftest import ROOT

    example = str(ROOT / "examples" / "cnn" / "cnn.mlir")
    ours, theirs = tmp_path / "ours.mlir", tmp_path / "theirs.mlir"
    assert main(["--ttir-to-emitc-pipeline=target-dylib", example, "-o", str(ours)]) == 0
    command = [oracle, "--allow-unregistered-dialect", "--mlir-print-op-generic", str(ours)]
    done = subprocess.run(
        [*command, "-o", str(theirs)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    first, second = (parse_module(Source.read(str(path))) for path in (ours, theirs))
    assert first.is_structurally_equivalent(second)
