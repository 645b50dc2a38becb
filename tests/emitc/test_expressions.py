"""Operators: precedence, parentheses, and what compilers warn about."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ttcodegen.emitc.builder import EmitCBuilder, open_file
from ttcodegen.emitc.operators import (
    BINARY_OPS,
    OPERATOR_SYNTAX,
    UNARY_OPS,
    ComparisonPredicate,
    ConditionalOp,
)
from ttcodegen.emitc.printer import print_module

# --- Trees, and their text -------------------------------------------------------------------


@dataclass(frozen=True)
class Tree:
    """An expression: the EmitC mnemonic (or `cmp_`, `conditional`), or a variable's name."""

    head: str
    children: tuple[Tree, ...] = ()


VARIABLES = [Tree(name) for name in "abcd"]
COMPARISONS = {f"cmp_{p.name.lower()}": p for p in ComparisonPredicate if p.name != "THREE_WAY"}

# The table of the language ([expr]), binding strength from weak to strong; written down here a
# second time on purpose.
LEVELS = [
    {"||": "logical_or"},
    {"&&": "logical_and"},
    {"|": "bitwise_or"},
    {"^": "bitwise_xor"},
    {"&": "bitwise_and"},
    {"==": "cmp_eq", "!=": "cmp_ne"},
    {"<": "cmp_lt", "<=": "cmp_le", ">": "cmp_gt", ">=": "cmp_ge"},
    {"<<": "bitwise_left_shift", ">>": "bitwise_right_shift"},
    {"+": "add", "-": "sub"},
    {"*": "mul", "/": "div", "%": "rem"},
]
PREFIXES = {"~": "bitwise_not", "!": "logical_not", "-": "unary_minus", "+": "unary_plus"}
TOKEN = re.compile(r"\s*([a-z]|\|\||&&|==|!=|<=|>=|<<|>>|[-+*/%&|^~!<>()?:])")


def binary_trees(children: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    heads = st.sampled_from([*BINARY_OPS, *COMPARISONS])
    return st.builds(lambda head, a, b: Tree(head, (a, b)), heads, children, children)


TREES = st.recursive(
    st.sampled_from(VARIABLES),
    lambda children: (
        binary_trees(children)
        | st.builds(lambda head, a: Tree(head, (a,)), st.sampled_from(sorted(UNARY_OPS)), children)
        | st.builds(lambda a, b, c: Tree("conditional", (a, b, c)), children, children, children)
    ),
    max_leaves=10,
)


def build(body: EmitCBuilder, tree: Tree, variables: dict[str, SSAValue]) -> SSAValue:
    if not tree.children:
        return variables[tree.head]
    operands = [build(body, child, variables) for child in tree.children]
    if tree.head in COMPARISONS:
        return body.compare(COMPARISONS[tree.head], *operands)
    if tree.head == "conditional":
        op = ConditionalOp(*operands)
        body.insert(op)
        return op.result
    if tree.head in UNARY_OPS:
        return body.unary(tree.head, *operands, "int32_t")
    return body.binary(tree.head, *operands, "int32_t")


def texts_of(trees: Sequence[Tree]) -> list[str]:
    """The trees as the printer writes them, each as the argument of a call."""
    module = ModuleOp([])
    names = [variable.head for variable in VARIABLES]
    body = open_file(module, "f.cpp").function("f", [(name, "int32_t") for name in names])
    variables = dict(zip(names, body.arguments, strict=True))
    for tree in trees:
        body.call_void("use", build(body, tree, variables))
    # The module is not verified: the types of the operands do not matter here.
    (text,) = print_module(module).values()
    return re.findall(r"^    use\((.*)\);$", text, re.MULTILINE)


def text_of(tree: Tree) -> str:
    """`tree` as the printer writes it."""
    (text,) = texts_of([tree])
    return text


def read(text: str) -> Tree:
    """The tree that C++ reads in `text`."""
    reader = Reader(text)
    tree = reader.conditional()
    assert reader.tokens == []
    return tree


class Reader:
    """Reads an expression as C++ does."""

    def __init__(self, text: str) -> None:
        self.tokens = TOKEN.findall(text)
        assert "".join(self.tokens) == text.replace(" ", "")

    def take(self, token: str) -> None:
        assert self.tokens.pop(0) == token

    def conditional(self) -> Tree:
        condition = self.binary(0)
        if self.tokens[:1] != ["?"]:
            return condition
        self.take("?")
        true_value = self.conditional()
        self.take(":")
        return Tree("conditional", (condition, true_value, self.conditional()))

    def binary(self, level: int) -> Tree:
        if level == len(LEVELS):
            return self.prefix()
        tree = self.binary(level + 1)
        while self.tokens and self.tokens[0] in LEVELS[level]:
            head = LEVELS[level][self.tokens.pop(0)]
            tree = Tree(head, (tree, self.binary(level + 1)))
        return tree

    def prefix(self) -> Tree:
        token = self.tokens.pop(0)
        if token in PREFIXES:
            return Tree(PREFIXES[token], (self.prefix(),))
        if token == "(":
            tree = self.conditional()
            self.take(")")
            return tree
        return Tree(token)


@given(TREES)
def test_the_text_means_the_tree(tree: Tree) -> None:
    text = text_of(tree)
    # Longer operations are given variables.
    assume(len(text) < 150 and not re.search("[a-z]{2}", text))
    assert read(text) == tree


def test_every_operator_in_every_place_of_every_other() -> None:
    a, b, c, d = VARIABLES
    places = [
        *((lambda x, head=head: Tree(head, (x, d))) for head in (*BINARY_OPS, *COMPARISONS)),
        *((lambda x, head=head: Tree(head, (d, x))) for head in (*BINARY_OPS, *COMPARISONS)),
        *((lambda x, head=head: Tree(head, (x,))) for head in UNARY_OPS),
        lambda x: Tree("conditional", (x, c, d)),
        lambda x: Tree("conditional", (c, x, d)),
        lambda x: Tree("conditional", (c, d, x)),
    ]
    operands = [
        *(Tree(head, (a, b)) for head in (*BINARY_OPS, *COMPARISONS)),
        *(Tree(head, (a,)) for head in UNARY_OPS),
        Tree("conditional", (a, b, c)),
    ]
    trees = [place(operand) for place in places for operand in operands]
    assert [read(text) for text in texts_of(trees)] == trees


def test_compilers_have_nothing_to_warn_of(check_syntax: Callable[[str], str]) -> None:
    """Mixed operators without parentheses are warnings (-Wparentheses and others)."""
    generator = random.Random(0)
    integers = [m for m in BINARY_OPS if not m.startswith("logical")]

    def tree(depth: int) -> Tree:
        if depth == 0:
            return generator.choice(VARIABLES)
        head = generator.choice([*integers, *BINARY_OPS, *COMPARISONS, "unary_minus"])
        count = 1 if head == "unary_minus" else 2
        return Tree(head, tuple(tree(depth - 1) for _ in range(count)))

    functions = [
        f"int f{number}(int a, int b, int c, int d) {{ return a + b + c + d + ({text}); }}"
        for number in range(150)
        if len(text := text_of(tree(generator.choice([2, 3])))) <= 160
    ]
    assert len(functions) > 100
    # Comparing truth values as numbers is what such trees do; the shape of the text is tested here.
    pragma = '#pragma GCC diagnostic ignored "-Wbool-compare"\n'
    pragma += '#pragma GCC diagnostic ignored "-Wint-in-bool-context"\n'
    pragma += '#pragma GCC diagnostic ignored "-Wbool-operation"\n'
    pragma += '#pragma GCC diagnostic ignored "-Wtautological-compare"\n'
    pragma += '#pragma GCC diagnostic ignored "-Wlogical-op"\n'
    pragma += '#pragma GCC diagnostic ignored "-Wdiv-by-zero"\n'
    assert check_syntax(pragma + "\n".join(functions) + "\n") == ""


# --- Single rules ----------------------------------------------------------------------------

A, B, C, D = VARIABLES


def binary(head: str, left: Tree, right: Tree) -> Tree:
    return Tree(head, (left, right))


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (binary("add", binary("mul", A, B), C), "a * b + c"),
        (binary("mul", binary("add", A, B), C), "(a + b) * c"),
        (binary("sub", binary("sub", A, B), C), "a - b - c"),
        (binary("sub", A, binary("sub", B, C)), "a - (b - c)"),
        (binary("add", A, binary("add", B, C)), "a + (b + c)"),
        (Tree("unary_minus", (Tree("unary_minus", (A,)),)), "-(-a)"),
        (Tree("unary_minus", (binary("add", A, B),)), "-(a + b)"),
        (binary("sub", A, Tree("unary_minus", (B,))), "a - -b"),
        (Tree("logical_not", (Tree("logical_not", (A,)),)), "!!a"),
        (binary("bitwise_or", binary("bitwise_or", A, B), C), "a | b | c"),
        (binary("bitwise_or", binary("bitwise_and", A, B), C), "(a & b) | c"),
        (binary("bitwise_or", A, binary("bitwise_left_shift", B, C)), "a | b << c"),
        (binary("bitwise_left_shift", A, binary("add", B, C)), "a << (b + c)"),
        (binary("bitwise_and", A, binary("cmp_eq", B, C)), "a & (b == c)"),
        (binary("logical_or", binary("logical_and", A, B), C), "(a && b) || c"),
        (binary("logical_and", binary("cmp_lt", A, B), C), "a < b && c"),
        (binary("cmp_lt", binary("cmp_lt", A, B), C), "(a < b) < c"),
        (binary("cmp_eq", Tree("logical_not", (A,)), B), "(!a) == b"),
        (binary("cmp_eq", A, Tree("logical_not", (B,))), "a == !b"),
        (Tree("conditional", (A, B, Tree("conditional", (C, A, B)))), "a ? b : c ? a : b"),
        (Tree("conditional", (Tree("conditional", (C, A, B)), A, B)), "(c ? a : b) ? a : b"),
        (binary("add", Tree("conditional", (A, B, C)), D), "(a ? b : c) + d"),
    ],
)
def test_parentheses(tree: Tree, text: str) -> None:
    assert text_of(tree) == text


def test_every_operator_is_in_the_syntax_table() -> None:
    assert set(OPERATOR_SYNTAX) == {*BINARY_OPS.values(), *UNARY_OPS.values()}
