"""Whatever the text: a module or a CompileError, never another exception."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.parsing.reading import T
from ttcodegen.foundation.diagnostics import CompileError, Source
from ttcodegen.parsing import check_supported, parse_module

MODULE = f"""#loc1 = loc("model.py":3:4)
!alias = {T}
module @m attributes {{ttcore.meshes = #ttcore.meshes<[<"mesh" = 1x1>]>}} {{
  ttcore.device_module {{
    builtin.module {{
      func.func @main(%arg0: {T} {{ttcore.argument_type = #ttcore.argument_type<input>}}
                      loc("x"(#loc1)), %w: tensor<2x2xbf16, #tt.layout<(d0) -> (d0)>>)
                      -> (!alias {{jax = ""}}) {{
        %0 = ttir.empty() : {T} loc(#loc2)
        %1 = "ttir.add"(%arg0, %arg0, %0) <{{operandSegmentSizes = array<i32: 2, 1>}}>
            : ({T}, {T}, {T}) -> {T}
        %2 = "ttir.constant"() <{{value = dense<[[1.5, 0x7F800000], [-2.0, 1.0e1]]> : {T}}}>
            : () -> {T}
        %3 = "ttir.constant"() {{value = dense<"0x0000803F"> : {T}}} : () -> {T}
            loc(fused[#loc1, "y"])
        %4:2 = "ttir.sort"(%1) <{{descending = false, dim = -1 : si32}}>
            : ({T}) -> ({T}, tensor<2x2xi32>)
        %5 = "ttir.constant"() <{{value = dense_resource<r> : tensor<2xi8>}}> : () -> tensor<2xi8>
        %6 = func.call @g(%4#0) : ({T}) -> {T}
        %7 = ttir.to_layout %6, %0 : {T} into {T} -> {T}
        return %7 : {T}
      }}
      func.func private @g(%x: {T}) -> {T} {{
        "x.region"() ({{
        ^bb0(%y: {T}):
          "x.use"(%z) : (i32) -> ()
          %z = "x.make"() : () -> i32
        }}) : () -> ()
        return %x : {T}
      }}
    }}
  }}
}}
#loc2 = loc(callsite("a" at "b"))
{{-# dialect_resources: {{ builtin: {{ r: "0x040000000102" }} }} #-}}
"""

PIECES = [
    "<", ">", "{", "}", "(", ")", "[", "]", '"', "#", "%", "^", "@", ":", ",", "=", "-", "->", "*",
    "?", "x", "\\", "\n", "\t", "\x00", "\x0b", "é", "0", "0x", "1e999", "9" * 5000, "-1 : ui8",
    "tensor<", "tensor<?xf32>", "tensor<*xf32>", f"tensor<{'9' * 30}xf32>", "dense<", "dense<[",
    "dense<true>", 'dense<"0x">', "sparse<", "array<i1: 2>", "array<f32: 0xFFFFFFFFF>", "#loc",
    "#loc2", "loc(", "loc(#loc1)", "fused<", "callsite(", "!alias", "!tt.tile<32x32, f32>",
    "#tt.x<",
    "affine_map<(d0) -> (d0)>", "affine_set<(d0) : (d0 >= 0)>", "strided<[1]>", "memref<2xf32, 1>",
    "vector<[2]xf32>", "complex<f32>", "tuple<>", "i0", f"i{'9' * 12}", "index", "none", "unit",
    "true", "module", "func.func @h", "return", "%0", "%4#9", "^bb0", "opaque<\"a\", \"b\">",
    "dense_resource<r>", "{-#", "#-}", '"ttir.add"', "ttir.to_layout", "operandSegmentSizes = ",
    "attributes {", "// ", "0xFF800000 : f32", "99999999999 : i32",
]  # fmt: skip


def read(text: str) -> None:
    """Fails the test if anything but a CompileError comes out, or it cannot be shown."""
    source = Source("in.mlir", text)
    message = ": error: "
    try:
        check_supported(parse_module(source))
    except CompileError as error:
        message = error.render(source)
    assert ": error: " in message


def test_the_module_itself_is_read() -> None:
    parse_module(Source("in.mlir", MODULE))


@settings(deadline=None)
@given(st.integers(0, len(MODULE)))
def test_truncated(end: int) -> None:
    read(MODULE[:end])


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(MODULE)), st.integers(0, 30), st.lists(st.sampled_from(PIECES))
        ),
        min_size=1,
        max_size=4,
    )
)
def test_mutated(edits: list[tuple[int, int, list[str]]]) -> None:
    text = MODULE
    for start, length, pieces in edits:
        text = text[:start] + "".join(pieces) + text[start + length :]
    read(text)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join))
@example("#a = #a")
@example('"x"() ({' * 500)
def test_arbitrary_pieces(text: str) -> None:
    read(text)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_arbitrary_bytes(data: bytes) -> None:
    try:
        source = Source.from_bytes("in.mlir", data)
    except CompileError as error:
        message = error.render()
    else:
        return read(source.text)
    assert ": error: the input is " in message
