"""Aliases, types, locations and attributes of dialects that we do not have."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import (
    CallSiteLoc,
    FileLineColLoc,
    FloatAttr,
    FusedLoc,
    IntegerAttr,
    ModuleOp,
    NameLoc,
    StringAttr,
    TensorType,
    UnitAttr,
    UnknownLoc,
    UnregisteredAttr,
)
from xdsl.ir import Attribute

from tests.parsing.reading import T, body, failure, operations, parse
from ttcodegen.foundation.diagnostics import Diagnostics, Source
from ttcodegen.parsing import parse_module


def attribute(text: str, definitions: str = "") -> Attribute:
    """The attribute that `text` spells, with alias definitions after the module."""
    module = parse(f"module attributes {{a = {text}}} {{}}\n{definitions}")
    return module.attributes["a"]


def location(text: str, definitions: str = "") -> Attribute:
    module = parse(body(f'"ttir.x"() : () -> () loc({text})') + definitions)
    return operations(module, "ttir.x")[0].location


# Aliases


def test_aliases_are_known_before_their_definition() -> None:
    assert attribute("#later", "#later = 3 : i32") == attribute("3 : i32")
    assert attribute("#a", '#a = [#b, #b]\n#b = "x"') == attribute('["x", "x"]')


def test_type_aliases_are_known_before_their_definition() -> None:
    module = parse(body('%0 = "ttir.x"(%a) : (!t) -> !t') + f"!t = {T}\n")
    assert str(operations(module, "ttir.x")[0].results[0].type) == T


def test_aliases_may_share_a_line() -> None:
    module = parse("#a = 1 : i32 #b = #a\nmodule attributes {a = #b} {}")
    assert module.attributes["a"] == attribute("1 : i32")


def test_what_looks_like_a_definition_in_a_comment_is_none() -> None:
    assert "undefined alias '#x'" in failure("// \n//#x = 1\nmodule attributes {a = #x} {}")


def test_chains_of_locations_are_read_deep_in_a_program() -> None:
    """As jax prints the stack of calls that an operation was traced in, within a notebook."""
    links = [f"#loc{i} = loc(callsite(#loc0 at #loc{i - 1}))" for i in range(1, 80)]
    text = "\n".join(["module {} loc(#loc79)", '#loc0 = loc("a.py":1:1)', *links])

    def within(calls: int) -> ModuleOp:
        return within(calls - 1) if calls else parse(text)

    assert not within(300).body.block.ops


def test_bad_aliases_are_located() -> None:
    assert failure("module attributes {a = #x} {}").startswith(
        "in.mlir:1:24: error: undefined alias '#x'"
    )
    assert failure("#a = #b\n#b = #a\nmodule {}").startswith(
        "in.mlir:1:6: error: alias '#b' is defined by itself"
    )
    message = failure("#a = 1\n#a = 2\nmodule {}")
    assert message.startswith("in.mlir:2:1: error: alias '#a' is defined twice")
    assert "in.mlir:1:1: note: first defined here" in message


def test_a_type_alias_is_no_attribute_alias() -> None:
    assert "type expected" in failure("!t = 3\nmodule {}")


# Types


@pytest.mark.parametrize(
    "type",
    [
        "tensor<f32>",
        "tensor<0x10xbf16>",
        "tensor<1x2x3x4x5x6x7xui8>",
        "tensor<2x!quant.any<i8<-8:7>:f32>>",
        "tensor<2xf8E5M2>",
        "tensor<4x!ttcore.tile<32x32, bfp_bf8>>",
        "tensor<2x3xsi32>",
        "tensor<2xi1>",
        "tensor<2xindex>",
    ],
)
def test_types(type: str) -> None:
    module = parse(body(f'%0 = "ttir.x"() : () -> {type}'))
    assert str(operations(module, "ttir.x")[0].results[0].type) == type


def test_encodings_of_other_dialects_are_dropped_with_a_warning() -> None:
    encoded = "tensor<2x2xf32, #ttir.layout<(d0, d1) -> (d0, d1), memref<2x2xf32, #l1>>>"
    text = body(f'%0 = "ttir.x"(%a) : ({encoded}) -> {encoded}')
    diagnostics = Diagnostics()
    source = Source("in.mlir", text)
    module = parse_module(source, diagnostics)
    assert operations(module, "ttir.x")[0].results[0].type == TensorType(
        operations(module, "ttir.x")[0].operands[0].type.element_type,
        [2, 2],
    )
    (warning,) = diagnostics.warnings
    assert "warning: tensor encodings such as #ttir.layout are ignored" in warning.render(source)
    assert warning.render(source).startswith("in.mlir:2:")


def test_memrefs_with_layouts_of_other_dialects() -> None:
    type = attribute("memref<2x3xf32, #ttcore.shard<12x4, 1>, #ttcore.memory_space<l1>>")
    layout, space = "#ttcore.shard<12x4, 1>", "#ttcore.memory_space<l1>"
    assert str(type) == f"memref<2x3xf32, {layout}, {space}>"
    other = attribute("memref<2x3xf32, #unknown.shard<12x4, 1>, #ttcore.memory_space<l1>>")
    assert str(other) == "memref<2x3xf32, #ttcore.memory_space<l1>>"


# Attributes


def test_attributes_of_unknown_dialects_are_kept_as_text() -> None:
    value = attribute('#other.thing<(d0) -> (d0), "a>b", [{x = 1}]>')
    assert isinstance(value, UnregisteredAttr)
    assert value.value.data == '(d0) -> (d0), "a>b", [{x = 1}]'


def test_equal_texts_give_equal_attributes() -> None:
    text = "#other.thing<1>"
    module = parse(f"module attributes {{a = {text}, b = [{text}], c = #other.thing< 1>}} {{}}")
    assert module.attributes["b"].data[0] == module.attributes["a"]
    assert module.attributes["c"] != module.attributes["a"]


@pytest.mark.parametrize("depth", range(1, 7))
def test_names_with_and_without_parameters_are_distinguished(depth: int) -> None:
    deep = "#other.thing" + "<" * depth + "1" + ">" * depth
    module = parse(f"module attributes {{a = #other.thing, b = {deep}, c = #other.thing}} {{}}")
    assert str(module.attributes["a"]) == str(module.attributes["c"]) == "#other.thing"
    assert str(module.attributes["b"]) == deep


def test_dictionaries_that_start_alike_are_distinguished() -> None:
    module = parse(
        body(
            '"ttir.x"() <{s = "a}>b", n = 1 : i32}> : () -> ()',
            '"ttir.x"() <{s = "a}>c", n = 2 : i32}> : () -> ()',
            '"ttir.x"() <{n = 3 : i32}> {n = 3 : i32} : () -> ()',
            '"ttir.x"() <{n = 3 : i32}> {n = 4 : i32} : () -> ()',
        )
    )
    found = operations(module, "ttir.x")
    assert [op.properties["n"].value.data for op in found] == [1, 2, 3, 3]
    assert [op.properties.get("s") for op in found[:2]] == [StringAttr("a}>b"), StringAttr("a}>c")]
    assert [op.attributes["n"].value.data for op in found[2:]] == [3, 4]


def test_changing_one_dictionary_leaves_the_other() -> None:
    module = parse(body(*['"ttir.x"() <{n = 1 : i32}> : () -> ()'] * 2))
    first, second = operations(module, "ttir.x")
    first.properties["n"] = UnitAttr()
    assert isinstance(second.properties["n"], IntegerAttr)


def test_text_with_escaped_utf8() -> None:
    assert attribute(r'"caf\C3\A9"') == StringAttr("café")


def test_numbers_out_of_range_are_located() -> None:
    message = failure("module attributes {a = 99999999999 : i32} {}")
    assert message.startswith("in.mlir:1:24: error: integer value 99999999999 is out of range")
    assert "out of range" in failure("module attributes {a = 0x1FFFFFFFFF : f32} {}")


def test_attributes_given_twice_are_located() -> None:
    message = failure('"ttir.x"() <{a = 1, b = {a = 1}, a = 2}> : () -> ()')
    assert message.startswith("in.mlir:1:34: error: attribute 'a' is given twice")


def test_float_attributes_keep_their_type() -> None:
    value = attribute("1 : bf16")
    assert isinstance(value, FloatAttr)
    assert (str(value.type), value.value.data) == ("bf16", 1.0)


# Locations


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("unknown", UnknownLoc),
        ('"name"', NameLoc),
        ('"name"("file.py":1:2)', NameLoc),
        ('"file.py":1:2', FileLineColLoc),
        ('"file.py":1', FileLineColLoc),
        ('"file.py":1:2 to 3:4', FileLineColLoc),
        ('"file.py":1:2 to :4', FileLineColLoc),
        ('fused["a", "b"("f":1:2)]', FusedLoc),
        ('fused<"meta">["a", unknown]', FusedLoc),
        ('callsite("a" at fused["b"])', CallSiteLoc),
        ("#other.location<1>", UnknownLoc),
    ],
)
def test_locations(text: str, expected: type[Attribute]) -> None:
    assert isinstance(location(text), expected)


def test_ranges_keep_their_start() -> None:
    value = location('"file.py":10:2 to 30:4')
    assert isinstance(value, FileLineColLoc)
    assert (value.line.data, value.column.data) == (10, 2)


def test_location_aliases_at_the_end_of_the_file() -> None:
    value = location(
        "#loc2", '#loc = loc("f.py":1:2)\n#loc1 = loc("in"(#loc))\n#loc2 = loc("x"(#loc1))'
    )
    assert isinstance(value, NameLoc)
    assert value.desc == StringAttr("x")


def test_arguments_have_locations() -> None:
    module = parse(
        f'func.func @f(%a: {T} {{x = 1}} loc("arg"), %b: {T} loc(#l)) {{ return }}\n#l = loc("b")'
    )
    (function,) = operations(module, "func.func")
    assert [arg.location for arg in function.regions[0].block.args] == [
        location('"arg"'),
        location('"b"'),
    ]
