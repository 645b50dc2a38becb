"""The table of docs/tt-lang.md: what of the functionality of TT-Lang holds, in the simulator and in
the compiler, and which tests show it.

    python scripts/lang_table.py            print it
    python scripts/lang_table.py --check    whether the document has it
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ttcodegen.lang.simulator.functions import MATH_FUNCTIONS
from ttcodegen.lang.simulator.spelling import FEATURES

DOCUMENT = Path(__file__).parent.parent / "docs" / "tt-lang.md"
TESTS = DOCUMENT.parent.parent / "tests" / "lang"
BEGIN, END = "<!-- table: scripts/lang_table.py -->\n", "<!-- end of table -->\n"

_EXAMPLES, _RULES = "test_examples.py", "test_rules.py"
_FUNCTIONS, _COMPILER = "test_functions.py", "test_compiler.py"
_CHECKED = f"{_COMPILER}::test_the_emulated_device_computes_what_the_simulator_does"
_ON_DEVICE = f"{_COMPILER}::test_functions_and_operators_on_the_emulated_device"
_OPERATORS = f"{_FUNCTIONS}::test_operators_and_functions_of_blocks"

ROWS: tuple[tuple[str, str, str], ...] = (
    ("grid size and node, in any number of dimensions",
     f"{_EXAMPLES}::test_tensor_slices", _CHECKED),
    ("mesh devices: an operation runs on each with its parts of the tensors",
     "test_meshes.py::test_products_divided_among_devices", _CHECKED),
    ("tensors in L1, and in shards on cores",
     f"{_EXAMPLES}::test_tensors_in_shards", _CHECKED),
    ("grids of several chips", "", ""),
    ("dataflow buffers of tiled tensors, of two and more dimensions",
     f"{_EXAMPLES}::test_batched_matmul_with_bias", _CHECKED),
    ("dataflow buffers of row-major tensors",
     f"{_EXAMPLES}::test_upsample_with_group_transfers", _CHECKED),
    ("block expressions of row-major blocks, copies of parts of rows",
     f"{_EXAMPLES}::test_blocks_of_rows", _CHECKED),
    ("states of blocks", f"{_RULES}::test_a_transition_that_the_states_do_not_have",
     f"{_RULES}::test_the_compiler_refuses_it_too"),
    ("`store`, overwriting and `+=`", f"{_EXAMPLES}::test_batched_matmul_with_bias", _CHECKED),
    ("reading and overwriting a block that is acquired",
     f"{_RULES}::test_a_block_may_be_read_and_overwritten_and_read_again", _CHECKED),
    ("`ttl.copy`, transfers, group transfers", f"{_EXAMPLES}::test_attention", _CHECKED),
    ("pipes and pipe nets", f"{_EXAMPLES}::test_nets_of_pipes", _CHECKED),
    ("functions that kernels call", f"{_EXAMPLES}::test_operations_on_rows", _CHECKED),
    ("numbers that loops carry, and that conditions change",
     f"{_EXAMPLES}::test_numbers_that_loops_carry_and_conditions_change", _CHECKED),
    ("numbers, lists, ranges, records and remote semaphores that differ from node to node",
     f"{_EXAMPLES}::test_what_differs_from_node_to_node", _CHECKED),
    ("operations that a compiled model calls",
     "test_calling.py::test_an_operation_means_what_the_simulator_makes_of_it",
     "test_calling.py::test_the_emulated_device_runs_a_model_with_an_operation"),
    ("tensors and dataflow buffers that differ from node to node",
     f"{_EXAMPLES}::test_operations_of_other_kinds", _CHECKED),
    ("`match`, `nonlocal`, `and` and `or` of numbers",
     f"{_EXAMPLES}::test_operations_of_other_kinds", _CHECKED),
    ("`while`, `break`, `continue`, comprehensions",
     f"{_EXAMPLES}::test_numbers_that_loops_carry_and_conditions_change",
     "test_statements.py::test_kernels_do_what_python_does"),
    ("operations as functions of whole tensors (`ttir.generic`)",
     "test_generics.py::test_examples_of_the_specification",
     "test_generics.py::test_the_common_path_compiles_it"),
    ("semaphores, of nodes and of ranges of nodes",
     f"{_EXAMPLES}::test_a_node_that_waits_for_all_others", _CHECKED),
    ("debug printing of strings, numbers and dataflow buffers", f"{_RULES}::test_debug_printing",
     f"{_COMPILER}::test_debug_prints_and_signposts_reach_the_output_of_the_emulated_device"),
    ("debug printing of blocks and tensors", f"{_RULES}::test_debug_printing",
     f"{_COMPILER}::test_debug_prints_and_signposts_reach_the_output_of_the_emulated_device"),
    ("signposts, ignored by the simulator", f"{_RULES}::test_a_signpost_changes_nothing",
     f"{_COMPILER}::test_debug_prints_and_signposts_reach_the_output_of_the_emulated_device"),
    ("operators `+ - * / // %` and unary `-`, `abs`, `**`", _OPERATORS, _ON_DEVICE),
    ("operator `@`", _OPERATORS, _ON_DEVICE),
    ("blocks of integers: `+ - * // % ^ **`, `ttl.math.max`, `min`, `abs`, `neg`, `square`, `rsub`,"
     " `sign`, `clamp` and its like, rounding, sums and maxima, `ttl.block`",
     f"{_EXAMPLES}::test_operations_of_other_kinds", _CHECKED),
    ("`ttl.math.max`, `min`", _OPERATORS, _ON_DEVICE),
    ("`ttl.math.reduce_sum`, `reduce_max`, over any dimensions",
     f"{_EXAMPLES}::test_reductions_over_planes", _CHECKED),
    ("`ttl.block.broadcast`, `fill`, `transpose`", _OPERATORS, _ON_DEVICE),
    ("`ttl.block.where`, `mask`, `mask_posinf`", _OPERATORS, _ON_DEVICE),
    ("`ttl.block.squeeze`, `unsqueeze`", _OPERATORS, _ON_DEVICE),
)  # fmt: skip
"""Rows of feature, simulator test and compiler test; an empty cell is unsupported."""


_ELEMENTS = "test_elements.py"
_MAKING = "test_buffer_making.py"
_NEWER: tuple[tuple[str, str], ...] = (
    (f"{_ELEMENTS}::test_elements_are_read_and_written", f"{_ELEMENTS}::test_a_gather_on_device"),
    (f"{_MAKING}::test_a_buffer_of_a_data_type", f"{_MAKING}::test_buffers_on_device"),
    (f"{_MAKING}::test_the_memory_of_a_shard", f"{_MAKING}::test_buffers_on_device"),
    (f"{_MAKING}::test_a_part_of_a_shard", ""),
    (f"{_MAKING}::test_a_group_takes_the_memory_of_its_largest_buffer", ""),
    (f"{_FUNCTIONS}::test_a_fill_of_a_data_type", f"{_MAKING}::test_buffers_on_device"),
    (_OPERATORS, _ON_DEVICE),
    ("test_unified.py::test_one_body_for_all_kernels", "test_unified.py::test_one_body_on_device"),
    ("test_unified.py::test_operations_are_made_of_others",
     "test_unified.py::test_one_body_on_device"),
    (f"{_FUNCTIONS}::test_flags_of_the_exponential", f"{_MAKING}::test_buffers_on_device"),
    (f"{_FUNCTIONS}::test_flags_of_the_exponential", ""),
    (f"{_ELEMENTS}::test_an_index_is_read", f"{_ELEMENTS}::test_a_gather_on_device"),
    (f"{_RULES}::test_a_block_may_be_read_and_overwritten_and_read_again", _CHECKED),
    ("test_work_division.py::test_work_is_divided_as_evenly_as_possible",
     "test_work_division.py::test_work_is_divided_as_evenly_as_possible"),
    ("test_work_division.py::test_shards_of_several_dimensions", ""),
)  # fmt: skip
"""The tests of each feature since version 0.17, in order."""


def _newer_rows() -> tuple[tuple[str, str, str], ...]:
    """Rows of the features since version 0.17."""
    return tuple(
        (f"{feature.version}: {feature.name}", *tests)
        for feature, tests in zip(FEATURES, _NEWER, strict=True)
    )


def _answer(test: str) -> str:
    return f"`{test}`" if test else "no"


def table() -> str:
    """The table in Markdown."""
    lines = ["| | simulator | compiler |", "|---|---|---|"]
    lines += [
        f"| {what} | {_answer(sim)} | {_answer(made)} |"
        for what, sim, made in (*ROWS, *_newer_rows())
    ]
    sections: dict[str, list[str]] = {}
    for function in MATH_FUNCTIONS.values():
        sections.setdefault(function.section, []).append(function.name)
    shown = f"`{_FUNCTIONS}::test_a_function_of_each_element`"
    for section, names in sections.items():
        what = f"{section}: {', '.join(f'`{name}`' for name in names)}"
        lines.append(f"| {what} | {shown} | `{_ON_DEVICE}` |")
    return "\n".join(lines) + "\n"


def tests() -> set[str]:
    """The tests that the table names."""
    return {test for row in (*ROWS, *_newer_rows()) for test in row[1:] if test}


def documented() -> str:
    """The table that the document has."""
    return DOCUMENT.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]


def main() -> int:
    """Prints the table, or compares it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="whether the document has the table")
    if parser.parse_args().check:
        return int(documented() != table())
    print(table(), end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
