"""One rule of the printer a test: the C++ of each op, names and scopes, refusals."""

from __future__ import annotations

import textwrap

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import ModuleOp

from tests.emitc.conftest import PrintBody, only_file, parse
from ttcodegen.emitc.builder import EmitCBuilder, Text, open_file
from ttcodegen.emitc.printer import print_module
from ttcodegen.emitc.statements import FileOp
from ttcodegen.foundation.diagnostics import CompileError, set_source_offset


def file_text(operations: str) -> str:
    return only_file(parse(f'"emitc.file"() <{{id = "f.cpp"}}> ({{ {operations} }}) : () -> ()'))


def dedented(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


# --- Definitions -----------------------------------------------------------------------------


def test_includes_are_one_block() -> None:
    text = file_text("""
        "emitc.include"() <{include = "cstdint", is_standard_include}> : () -> ()
        "emitc.include"() <{include = "model.hpp"}> : () -> ()
        "emitc.verbatim"() <{value = "int x;"}> : () -> ()
    """)
    assert text == '#include <cstdint>\n#include "model.hpp"\n\nint x;\n'


def test_globals() -> None:
    text = file_text("""
        "emitc.global"() <{sym_name = "a", type = i32}> : () -> ()
        "emitc.global"() <{sym_name = "b", type = f32, initial_value = 0.5 : f32,
                           static_specifier, const_specifier}> : () -> ()
        "emitc.global"() <{sym_name = "c", type = !emitc.array<2x2xi32>,
                           initial_value = dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>}> : () -> ()
        "emitc.global"() <{sym_name = "d", type = i32, extern_specifier}> : () -> ()
        "emitc.global"() <{sym_name = "e", type = !emitc.opaque<"Config">,
                           initial_value = #emitc.opaque<"{1, 2}">}> : () -> ()
    """)
    assert text == dedented("""
        int32_t a;
        static const float b = 0.5f;
        int32_t c[2][2] = {{1, 2}, {3, 4}};
        extern int32_t d;
        Config e{1, 2};
    """)


def test_structures_and_member_functions() -> None:
    text = file_text("""
        "emitc.class"() <{sym_name = "Inputs", class_type = 1 : i32}> ({
          "emitc.field"() <{sym_name = "x", type = !emitc.opaque<"ttnn::Tensor">}> : () -> ()
          "emitc.field"() <{sym_name = "mask", type = !emitc.array<2xi1>}> : () -> ()
        }) : () -> ()
        "emitc.class"() <{sym_name = "Counter", final_specifier}> ({
          "emitc.field"() <{sym_name = "count", type = i32, initial_value = 3 : i32}> : () -> ()
          "emitc.func"() <{sym_name = "next", function_type = (i32) -> i32}> ({
          ^bb0(%count: i32):
            %field = "emitc.get_field"() <{field_name = @count}> : () -> i32
            %0 = "emitc.add"(%field, %count) : (i32, i32) -> i32
            "emitc.return"(%0) : (i32) -> ()
          }) : () -> ()
        }) : () -> ()
    """)
    assert text == dedented("""
        struct Inputs {
            ttnn::Tensor x;
            bool mask[2];
        };

        class Counter final {
          public:
            int32_t count = 3;

            int32_t next(int32_t count) {
                return this->count + count;
            }
        };
    """)


def test_functions_are_set_off_with_their_comments() -> None:
    text = file_text("""
        "emitc.verbatim"() <{value = "int x;"}> : () -> ()
        "emitc.verbatim"() <{value = "// About f."}> : () -> ()
        "emitc.func"() <{sym_name = "f", function_type = () -> (),
                         specifiers = ["static", "inline"]}> ({
          "emitc.return"() : () -> ()
        }) : () -> ()
        "emitc.func"() <{sym_name = "g", function_type = () -> ()}>
            ({ "emitc.return"() : () -> () }) : () -> ()
    """)
    assert text == dedented("""
        int x;

        // About f.
        static inline void f() {
        }

        void g() {
        }
    """)


def test_declarations() -> None:
    text = file_text("""
        "emitc.func"() <{sym_name = "other", function_type = (i32, f32) -> i32,
                         arg_attrs = [{ttcodegen.name = "layer_0"}, {}]}> ({}) : () -> ()
        "emitc.declare_func"() <{sym_name = @f}> : () -> ()
        "emitc.func"() <{sym_name = "f", function_type = (i32) -> i32}> ({
        ^bb0(%x: i32):
          "emitc.return"(%x) : (i32) -> ()
        }) : () -> ()
    """)
    assert text.startswith(
        "int32_t other(int32_t layer_0, float argument);\nint32_t f(int32_t x);\n"
    )


def test_unused_parameters_have_no_name(print_body: PrintBody) -> None:
    module = ModuleOp([])
    open_file(module, "f.cpp").function("f", [("device", "Device*"), ("n", "int32_t")]).return_()
    assert only_file(module).startswith("void f(Device* /*device*/, int32_t /*n*/) {")


# --- Statements ------------------------------------------------------------------------------


def test_variables_and_assignments(print_parsed: PrintBody) -> None:
    assert print_parsed(
        """
        %a = "emitc.variable"() <{value = #emitc.opaque<"">}> : () -> !emitc.lvalue<i32>
        %b = "emitc.variable"() <{value = 4 : i32}> : () -> !emitc.lvalue<i32>
        %c = "emitc.variable"() <{value = #emitc.opaque<"{1}">}>
            : () -> !emitc.lvalue<!emitc.opaque<"S">>
        %d = "emitc.variable"() <{value = #emitc.opaque<"">}> : () -> !emitc.array<3xf32>
        "emitc.assign"(%a, %x) : (!emitc.lvalue<i32>, i32) -> ()
        """,
        "%x: i32",
    ) == ["int32_t a;", "int32_t b = 4;", "S c{1};", "float d[3];", "a = x;"]


def test_if_and_else_if(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        first, second = body.arguments
        then, otherwise = body.if_(first, otherwise=True)
        then.call_void("a")
        then.end_block()
        inner, last = otherwise.if_(second, otherwise=True)
        inner.call_void("b")
        inner.end_block()
        last.call_void("c")
        last.end_block()
        otherwise.end_block()
        (only,) = body.if_(second)
        only.end_block()

    assert print_body(build, [("first", "bool"), ("second", "bool")]) == [
        "if (first) {",
        "    a();",
        "} else if (second) {",
        "    b();",
        "} else {",
        "    c();",
        "}",
        "if (second) {",
        "}",
    ]


def test_loops_count_with_i_j_k(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        (n,) = body.arguments
        zero, one = body.constant(0, "size_t"), body.constant(1, "size_t")
        outer = body.for_(zero, n, one)
        inner = outer.for_(outer.block.args[0], n, outer.constant(2, "size_t"))
        inner.call_void("use", outer.block.args[0], inner.block.args[0])
        inner.end_block()
        outer.end_block()
        named = body.for_(zero, n, one, name="tile")
        named.end_block()

    assert print_body(build, [("n", "size_t")]) == [
        "for (size_t i = 0; i < n; ++i) {",
        "    for (size_t j = i; j < n; j += 2) {",
        "        use(i, j);",
        "    }",
        "}",
        "for (size_t tile = 0; tile < n; ++tile) {",
        "}",
    ]


def test_do_while(print_parsed: PrintBody) -> None:
    assert print_parsed(
        """
        %v = "emitc.variable"() <{value = 0 : i32}> : () -> !emitc.lvalue<i32>
        "emitc.do"() ({
          "emitc.assign"(%v, %n) : (!emitc.lvalue<i32>, i32) -> ()
        }, {
          %again = "emitc.expression"(%v, %n) ({
          ^bb0(%y: !emitc.lvalue<i32>, %z: i32):
            %now = "emitc.load"(%y) : (!emitc.lvalue<i32>) -> i32
            %less = "emitc.cmp"(%now, %z) <{predicate = 2 : i64}> : (i32, i32) -> i1
            "emitc.yield"(%less) : (i1) -> ()
          }) : (!emitc.lvalue<i32>, i32) -> i1
          "emitc.yield"(%again) : (i1) -> ()
        }) : () -> ()
        """,
        "%n: i32",
    ) == ["int32_t v = 0;", "do {", "    v = n;", "} while (v < n);"]


def test_switch(print_parsed: PrintBody) -> None:
    assert print_parsed(
        """
        "emitc.switch"(%x) <{cases = array<i64: 2>}> ({
          "emitc.yield"() : () -> ()
        }, {
          "emitc.call_opaque"() <{callee = "two"}> : () -> ()
          "emitc.yield"() : () -> ()
        }) : (i32) -> ()
        """,
        "%x: i32",
    ) == [
        "switch (x) {",
        "    case 2: {",
        "        two();",
        "        break;",
        "    }",
        "    default: {",
        "        break;",
        "    }",
        "}",
    ]


def test_verbatim_takes_operands_and_keeps_directives_in_the_first_column() -> None:
    text = file_text("""
        "emitc.func"() <{sym_name = "f", function_type = (i32) -> ()}> ({
        ^bb0(%x: i32):
          "emitc.verbatim"(%x, %x) <{value = "a({{{}, {});"}> : (i32, i32) -> ()
          "emitc.verbatim"() <{value = "#pragma unroll\\nb({});"}> : () -> ()
          "emitc.verbatim"() <{value = ""}> : () -> ()
          "emitc.return"() : () -> ()
        }) : () -> ()
    """)
    assert text == "void f(int32_t x) {\n    a({x, x);\n#pragma unroll\n    b({});\n\n}\n"


# --- Calls and access ------------------------------------------------------------------------


def test_calls(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        x, device = body.arguments
        y = body.call("ttnn::add", x, Text("std::nullopt"), x, template_args=(3, "float"))
        body.call_method(y, "reshape", Text("{1, 2}"))
        body.call_method(device, "close")
        body.call_void("ttnn::deallocate", y)
        values, indices = body.call_several("ttnn::topk", x, types=["T", "T"], names=["v", "i_0"])
        body.call_void("g", values, indices)

    assert print_body(build, [("x", "T"), ("device", "Device*")]) == [
        "ttnn::Tensor add = ttnn::add<3, float>(x, std::nullopt, x);",
        "add.reshape({1, 2});",
        "device->close();",
        "ttnn::deallocate(add);",
        "auto [v, i_0] = ttnn::topk(x);",
        "g(v, i_0);",
    ]


def test_aggregates(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        (x,) = body.arguments
        config = body.aggregate("Config", {"depth": Text("3"), "input": x}, name="config")
        pair = body.braced("std::vector<T>", x, x)
        body.call_void("f2", config, pair, body.aggregate("Empty", {}))

    assert print_body(build, [("x", "T")]) == [
        "Config config{.depth = 3, .input = x};",
        "f2(config, std::vector<T>{x, x}, Empty{});",
    ]


def test_access(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        inputs, pointer, parts = body.arguments
        body.call_void("use", body.member(body.member(inputs, "a", "A"), "b", "B"))
        body.call_void("use", body.member(pointer, "c", "C"))
        body.call_void("use", body.subscript(parts, 2, "T"))
        body.call_void("use", body.get(parts, 1, "T"))
        body.call_void("use", body.subscript(parts, 0, "T", name="first"))

    parameters = [("inputs", "const In&"), ("pointer", "const P*"), ("parts", "const V&")]
    assert print_body(build, parameters) == [
        "use(inputs.a.b);",
        "use(pointer->c);",
        "use(parts[2]);",
        "use(std::get<1>(parts));",
        "T first = parts[0];",
        "use(first);",
    ]


def test_casts(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        x, address = body.arguments
        body.call_void("use", body.cast(body.binary("add", x, x, "int32_t"), "float"))
        body.call_void("use", body.cast(address, "uint32_t*"))

    assert print_body(build, [("x", "int32_t"), ("address", "uint32_t")]) == [
        "use(static_cast<float>(x + x));",
        "use(reinterpret_cast<uint32_t*>(address));",
    ]


def test_calls_of_functions_of_the_file(print_parsed: PrintBody) -> None:
    outside = '"emitc.func"() <{sym_name = "g", function_type = (i32) -> i32}> ({}) : () -> ()\n'
    operations = """
        %0 = "emitc.call"(%x) <{callee = @g}> : (i32) -> i32
        %1 = "emitc.call"(%0) <{callee = @g}> : (i32) -> i32
        "emitc.call_opaque"(%1) <{callee = "use"}> : (i32) -> ()
    """
    assert print_parsed(operations, "%x: i32", outside) == [
        "int32_t g_2 = g(x);",
        "int32_t g_3 = g(g_2);",
        "use(g_3);",
    ]


# --- Names -----------------------------------------------------------------------------------


def test_names_are_sanitised_and_numbered(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        for name in ("attn_scores", "attn_scores", "layer.0/out", "class", "ttnn", None, None):
            body.call_void("use", body.call("ttnn::matmul", name=name))

    lines = print_body(build)
    assert [line.split()[1] for line in lines if "=" in line] == [
        "attn_scores",
        "attn_scores_2",
        "layer_0_out",
        "class_",
        "ttnn_",
        "matmul",
        "matmul_2",
    ]


def test_numeric_endings_of_names_survive(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        for number in range(2):
            body.call_void("use", body.call("f2", name=f"layer_{number}"))

    assert [line for line in print_body(build) if "=" in line] == [
        "ttnn::Tensor layer_0 = f2();",
        "ttnn::Tensor layer_1 = f2();",
    ]


def test_names_do_not_hide_what_the_file_uses(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        value = body.call("prepare", Text("kDram"), type="Config", name="prepare")
        other = body.call("prepare", value, type="Config", name="kDram")
        body.call_void("ttnn::add", other, body.call("ttnn::matmul", name="add"))
        body.comment("a note about scores")
        body.call_void("use", body.call("ttnn::matmul", name="note"))

    lines = print_body(build)
    assert lines[0] == "Config prepare_2 = prepare(kDram);"
    assert lines[1] == "Config kDram_2 = prepare(prepare_2);"
    # A name after `::` is not looked up in the function, and comments name nothing.
    assert lines[2] == "ttnn::Tensor add = ttnn::matmul();"
    assert lines[5] == "ttnn::Tensor note = ttnn::matmul();"


def test_sibling_blocks_reuse_names(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        body.call_void("use", body.call("f2", name="y"))
        for branch in body.if_(body.arguments[0], otherwise=True):
            branch.call_void("use", branch.call("f2", name="x"))
            branch.call_void("use", branch.call("f2", name="y"))
            branch.end_block()
        body.call_void("use", body.call("f2", name="x"))

    names = [line.split()[1] for line in print_body(build, [("c", "bool")]) if " = " in line]
    assert names == ["y", "x", "y_2", "x", "y_2", "x"]


# --- Files and refusals ----------------------------------------------------------------------


def test_files_by_path() -> None:
    module = ModuleOp([])
    for path in ("src/b.cpp", "src/a.hpp"):
        open_file(module, path).verbatim(f"// {path}")
    assert print_module(module) == {
        "src/b.cpp": "// src/b.cpp\n",
        "src/a.hpp": "// src/a.hpp\n",
    }


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x.cpp", "a b.cpp", "src/.hidden", "a\\b"])
def test_paths_stay_in_the_project(path: str) -> None:
    with pytest.raises(CompileError, match="is not a file inside the generated project"):
        print_module(ModuleOp([FileOp(path)]))


def test_a_path_occurs_once() -> None:
    with pytest.raises(CompileError, match=r"has two files 'a\.cpp'"):
        print_module(ModuleOp([FileOp("a.cpp"), FileOp("a.cpp")]))


def test_an_unknown_op_is_refused_at_its_place() -> None:
    module = ModuleOp([])
    body = open_file(module, "f.cpp").function("f", [])
    unknown = test.TestOp()
    set_source_offset(unknown, 17)
    body.insert(unknown)
    body.return_()
    with pytest.raises(CompileError, match=r"no C\+\+ for the operation 'test.op'") as error:
        print_module(module)
    assert error.value.diagnostics[0].place == 17


def test_ops_outside_of_files_are_refused() -> None:
    with pytest.raises(CompileError, match=r"'test.op' is outside of the files"):
        print_module(ModuleOp([test.TestOp()]))


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ('"emitc.include"() <{include = "a>\\0Aint x;"}> : () -> ()', "is not a header"),
        ('"emitc.global"() <{sym_name = "x; int y", type = i32}> : () -> ()', "not a C.. identif"),
        ('"emitc.class"() <{sym_name = "class"}> ({^bb0:}) : () -> ()', "not a C.. identifier"),
        (
            '"emitc.func"() <{sym_name = "f()", function_type = () -> ()}> ({}) : () -> ()',
            "not a C.. identifier",
        ),
        (
            '"emitc.call_opaque"() <{callee = "f(); g"}> : () -> ()',
            "is not the name of a function",
        ),
        (
            '"emitc.global"() <{sym_name = "x", type = tensor<2xi32>}> : () -> ()',
            "has no C.. spelling",
        ),
        (
            '"emitc.global"() <{sym_name = "x", type = i32, initial_value = "text"}> : () -> ()',
            "has no C.. value",
        ),
        ('"emitc.declare_func"() <{sym_name = @f}> : () -> ()', "there is no function 'f'"),
        (
            '"emitc.call_opaque"() <{callee = "f"}> {ttcodegen.method} : () -> ()',
            "a member function needs an object",
        ),
        (
            '"emitc.call_opaque"() <{callee = "S"}> {ttcodegen.initializers = ["a"]} : () -> ()',
            "1 designators, 0 values",
        ),
    ],
)
def test_what_cannot_be_written_is_refused(operations: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        file_text(operations)


def test_members_are_identifiers(print_body: PrintBody) -> None:
    with pytest.raises(CompileError, match=r"is not a C\+\+ identifier"):
        print_body(
            lambda body: body.call_void("f2", body.member(body.arguments[0], "a; b", "T")),
            [("x", "const S&")],
        )


def test_hostile_names_stay_names(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        body.comment('"); system("x");\nint y; \\')
        body.call_void("use", body.call("f2", name='x = 0; system("rm")'))

    assert print_body(build) == [
        '// "); system("x");',
        "// int y; /",
        "ttnn::Tensor x_0_system_rm = f2();",
        "use(x_0_system_rm);",
    ]


def test_parameter_names_come_from_attributes_before_hints() -> None:
    module = ModuleOp([])
    open_file(module, "f.cpp").function("f", [("x_0", "T")]).return_()
    assert only_file(module).startswith("void f(T /*x_0*/)")


def test_parameters_with_fixed_names() -> None:
    module = ModuleOp([])
    source = open_file(module, "f.cpp")
    parameters = [("device", "Device&"), ("queue", "Queue&")]
    body = source.function("f", parameters, fixed_names=["device", "queue"])
    opened, other = body.call("open", name="device"), body.call("queue_of", name="queue")
    body.call_void("use", Text("&device"), opened, other)
    body.return_()
    assert only_file(module) == dedented("""
        void f(Device& device, Queue& /*queue*/) {
            ttnn::Tensor device_2 = open();
            ttnn::Tensor queue_2 = queue_of();
            use(&device, device_2, queue_2);
        }
    """)
