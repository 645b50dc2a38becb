"""Inlining of values into the expressions that use them, or into variables."""

from __future__ import annotations

from tests.emitc.conftest import PrintBody
from ttcodegen.emitc.builder import EmitCBuilder, Text
from ttcodegen.emitc.expressions import AddressOfOp

INT = "int32_t"


def test_numbers_and_members_are_written_at_each_use(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        one = body.constant(1, INT)
        weight = body.member(body.arguments[0], "weight", "T")
        text = body.literal("kOne", INT)
        body.call_void("use", one, weight, text)
        body.call_void("use", one, weight, text)

    assert print_body(build, [("weights", "const W&")]) == ["use(1, weights.weight, kOne);"] * 2


def test_an_operation_with_one_use_is_inlined(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        x, y = body.arguments
        body.call_void("use", body.binary("mul", body.binary("add", x, y, INT), x, INT))

    assert print_body(build, [("x", INT), ("y", INT)]) == ["use((x + y) * x);"]


def test_an_operation_with_two_uses_gets_a_variable(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        (x,) = body.arguments
        double = body.binary("add", x, x, INT)
        body.call_void("use", double, double)

    assert print_body(build, [("x", INT)]) == ["int32_t sum = x + x;", "use(sum, sum);"]


def test_an_operation_with_a_name_gets_a_variable(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        (x,) = body.arguments
        double = body.binary("add", x, x, INT)
        double.name_hint = "double_x"
        body.call_void("use", double)

    assert print_body(build, [("x", INT)]) == ["int32_t double_x = x + x;", "use(double_x);"]


def test_a_call_is_a_statement_of_its_own(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        body.call_void("use", body.call("next", type=INT))
        body.call("next", type=INT)

    assert print_body(build) == ["int32_t next_2 = next();", "use(next_2);", "next();"]


def test_a_pure_call_with_one_use_is_inlined(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        body.call_void("use", body.call("Shape", Text("2"), type="Shape", pure=True))
        several = body.call("Shape", Text("3"), type="Shape", pure=True)
        body.call_void("use", several, several)

    assert print_body(build) == ["use(Shape(2));", "Shape shape = Shape(3);", "use(shape, shape);"]


def test_nothing_is_computed_in_a_loop_that_was_not(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        (n,) = body.arguments
        square = body.binary("mul", n, n, "size_t")
        loop = body.for_(body.constant(0, "size_t"), n, body.constant(1, "size_t"))
        loop.call_void("use", square)
        loop.end_block()

    assert print_body(build, [("n", "size_t")]) == [
        "size_t product = n * n;",
        "for (size_t i = 0; i < n; ++i) {",
        "    use(product);",
        "}",
    ]


def test_a_variable_that_never_changes_is_read_anywhere(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        config = body.variable("config", "Config", Text("{2}"))
        value = body.load(config)
        depth = body.member(config, "depth", INT)
        body.call_void("change")
        body.call_void("use", value, depth)
        body.call_void("use", value, depth)

    assert print_body(build) == [
        "Config config{2};",
        "change();",
        "use(config, config.depth);",
        "use(config, config.depth);",
    ]


def test_a_read_does_not_move_over_a_write(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        (x,) = body.arguments
        count = body.variable("count", INT, Text("0"))
        before = body.load(count)
        body.assign(count, x)
        body.call_void("use", before, body.load(count))

    assert print_body(build, [("x", INT)]) == [
        "int32_t count = 0;",
        "int32_t value = count;",
        "count = x;",
        "use(value, count);",
    ]


def test_a_read_moves_through_operations_to_its_statement(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        (x,) = body.arguments
        count = body.variable("count", INT, Text("0"))
        body.assign(count, body.binary("add", body.load(count), x, INT))
        late = body.binary("add", body.load(count), x, INT)
        body.call_void("tick")
        body.call_void("use", late)

    assert print_body(build, [("x", INT)]) == [
        "int32_t count = 0;",
        "count = count + x;",
        "int32_t value = count;",
        "tick();",
        "use(value + x);",
    ]


def test_a_read_does_not_move_into_a_loop(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        (x,) = body.arguments
        count = body.variable("count", INT, Text("0"))
        bound = body.load(count)
        loop = body.for_(body.constant(0, INT), bound, body.constant(1, INT))
        loop.assign(count, x)
        loop.end_block()

    lines = print_body(build, [("x", INT)])
    assert lines[1:3] == ["int32_t value = count;", "for (int32_t i = 0; i < value; ++i) {"]


def test_an_index_is_read_where_it_was(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        (values,) = body.arguments
        index = body.variable("index", "size_t", Text("0"))
        element = body.subscript(values, body.load(index), "T")
        body.assign(index, body.constant(1, "size_t"))
        body.call_void("use", element)

    assert print_body(build, [("values", "const std::vector<T>&")]) == [
        "size_t index = 0;",
        "size_t value = index;",
        "index = 1;",
        "use(values[value]);",
    ]


def test_what_a_pointer_points_to_may_change(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        mutable, constant = body.arguments
        first = body.subscript(mutable, 0, INT)
        second = body.subscript(constant, 0, "const int32_t")
        body.call_void("change", mutable)
        body.call_void("use", first, second)

    assert print_body(build, [("p", "int32_t*"), ("q", "const int32_t*")]) == [
        "int32_t value = p[0];",
        "change(p);",
        "use(value, q[0]);",
    ]


def test_a_variable_whose_address_is_taken_may_change(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        count = body.variable("count", INT, Text("0"))
        before = body.load(count)
        address = AddressOfOp(count)
        body.insert(address)
        body.call_void("change", address.result)
        body.call_void("use", before)

    assert print_body(build) == [
        "int32_t count = 0;",
        "int32_t value = count;",
        "change(&count);",
        "use(value);",
    ]


def test_constant_globals_are_read_anywhere(print_parsed: PrintBody) -> None:
    outside = """
        "emitc.global"() <{sym_name = "limit", type = i32, initial_value = 3 : i32,
                           const_specifier}> : () -> ()
        "emitc.global"() <{sym_name = "count", type = i32, initial_value = 0 : i32}> : () -> ()
    """
    operations = """
        %0 = "emitc.get_global"() <{name = @limit}> : () -> !emitc.lvalue<i32>
        %1 = "emitc.load"(%0) : (!emitc.lvalue<i32>) -> i32
        %2 = "emitc.get_global"() <{name = @count}> : () -> !emitc.lvalue<i32>
        %3 = "emitc.load"(%2) : (!emitc.lvalue<i32>) -> i32
        "emitc.call_opaque"() <{callee = "change"}> : () -> ()
        "emitc.call_opaque"(%1, %3) <{callee = "use"}> : (i32, i32) -> ()
    """
    assert print_parsed(operations, outside=outside)[-3:] == [
        "int32_t value = count;",
        "change();",
        "use(limit, value);",
    ]


def test_expressions_are_inlined_unless_asked_or_with_effects(print_parsed: PrintBody) -> None:
    def expression(result: str, body: str, properties: str = "") -> str:
        return f"""
        {result} = "emitc.expression"(%a){properties} ({{
        ^bb0(%x: i32):
          {body}
          "emitc.yield"(%r) : (i32) -> ()
        }}) : (i32) -> i32
        "emitc.call_opaque"({result}) <{{callee = "use"}}> : (i32) -> ()
        """

    add = '%r = "emitc.add"(%x, %x) : (i32, i32) -> i32'
    call = '%c = "emitc.call_opaque"(%x) <{callee = "next"}> : (i32) -> i32\n'
    call += '%r = "emitc.add"(%c, %x) : (i32, i32) -> i32'
    operations = expression("%0", add) + expression("%1", add, " <{do_not_inline}>")
    assert print_parsed(operations + expression("%2", call), "%a: i32") == [
        "use(a + a);",
        "int32_t value = a + a;",
        "use(value);",
        "int32_t value_2 = next(a) + a;",
        "use(value_2);",
    ]


def test_long_chains_are_broken(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        (x,) = body.arguments
        total = x
        for _ in range(3000):
            total = body.binary("add", total, x, INT)
        body.call_void("use", total)

    lines = print_body(build, [("argument", INT)])
    assert max(map(len, lines)) < 250
    assert sum(line.count("+") for line in lines) == 3000


def test_values_without_use_are_not_written(print_body: PrintBody) -> None:
    def build(body: EmitCBuilder) -> None:
        (x,) = body.arguments
        body.binary("add", x, x, INT)
        body.load(body.variable("unread", INT))

    assert print_body(build, [("x", INT)]) == ["int32_t unread;"]
