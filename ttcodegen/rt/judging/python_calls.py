"""The calls of a program as the Python package of ttnn takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from ttcodegen.dialects.compute_config import ComputeConfig
from ttcodegen.dialects.cores import CoreRange
from ttcodegen.dialects.placement import TensorPlacement
from ttcodegen.dialects.program_configs import (
    CoreGrid,
    CoreSet,
    FusedActivation,
    ProgramConfig,
    Word,
)
from ttcodegen.flatbuffer import program as file
from ttcodegen.optimizer.calls import LibraryCall, call_in_file
from ttcodegen.optimizer.dense_rows import elementwise

Json = Any
Keywords = dict[str, Json]

PLAIN = frozenset(
    """
    relu silu neg abs square sin cos tanh exp gelu sqrt rsqrt reciprocal sigmoid log erf floor
    """.split()
)
BINARY = frozenset(
    """
    add subtract multiply divide maximum minimum eq ne lt le gt ge pow logical_and logical_or
    """.split()
)


class Step:
    """One call: its tensors by their numbers in the program, and what is written for them."""

    def __init__(self, program: file.Program, operation: file.Operation) -> None:
        self.program = program
        self.operation = operation
        self.call: LibraryCall = call_in_file(program, operation)
        self.groups: list[list[Json]] = []
        numbers = iter(operation.operands)
        for size in operation.operand_sizes:
            self.groups.append([{"tensor": next(numbers)} for _ in range(size)])

    def operand(self, index: int) -> Json:
        """The operand of that place in the definition, None if it is absent."""
        if index >= len(self.groups) or not self.groups[index]:
            return None
        return self.groups[index][0]

    def __getitem__(self, name: str) -> Any:
        return self.call.attributes.get(name)

    @property
    def memory(self) -> Json:
        """The memory configuration of the result, None where none is passed."""
        placements = (*self.call.operands, *self.call.results)
        if all(p.buffer_type != "l1" and p.shards is None for p in placements):
            return None
        return {"memory": memory_json(self.call.result)}

    @property
    def compute(self) -> Json:
        """The configuration of the kernels."""
        return compute_json(self.call.compute_config)

    @property
    def config(self) -> Json:
        """The configuration of the programs."""
        return config_json(self.call.program_config)


def memory_json(placement: TensorPlacement) -> Json:
    """Where a tensor lies."""
    found: dict[str, Json] = {
        "layout": placement.memory_layout,
        "buffer": placement.buffer_type,
        "shards": None,
    }
    if placement.shards is not None:
        found["shards"] = {
            "shape": list(placement.shards.shape),
            "ranges": ranges_json(placement.shards.core_ranges),
            "orientation": placement.shards.orientation.value,
        }
    return found


def ranges_json(ranges: Sequence[CoreRange]) -> Json:
    """Cores, as rectangles of them."""
    return sorted([r.first_column, r.first_row, r.last_column, r.last_row] for r in ranges)


def type_json(placement: TensorPlacement) -> Json:
    """How a tensor lies."""
    on_host = placement.buffer_type == "system_memory"
    return {
        "shape": list(placement.shape),
        "dtype": placement.data_type.mlir,
        "page": placement.layout.value,
        "memory": None if on_host else memory_json(placement),
    }


def compute_json(config: ComputeConfig | None) -> Json:
    """A compute kernel configuration."""
    if config is None:
        return None
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    return {"compute": {**values, "math_fidelity": config.math_fidelity.cpp}}


def config_json(config: ProgramConfig | None) -> Json:
    """A program configuration, by the name of its class."""
    if config is None:
        return None
    given: dict[str, Json] = {}
    for name, value in config.given():
        given[config.spelled.get(name, name)] = _field(value)
    name = config.cpp.rpartition("::")[2]
    return {"program": [name, given]}


def _field(value: object) -> Json:
    match value:
        case CoreGrid():
            return {"grid": [value.columns, value.rows]}
        case CoreSet():
            return {"cores": ranges_json(value.ranges)}
        case FusedActivation():
            return {"activation": [value.op_type, list(value.params)]}
        case Word(text) if text in ("tile", "row_major"):
            return {"page": text}
        case Word(text) if "sharded" in text:
            return {"shard_layout": text}
        case Word(text):
            return {"dtype": text}
        case _:
            return value


def _given(**keywords: Json) -> Keywords:
    return {key: value for key, value in keywords.items() if value is not None}


def _product(step: Step) -> tuple[str, list[Json], Keywords]:
    keywords = _given(
        bias=step.operand(2),
        transpose_a=bool(step["transpose_a"]),
        transpose_b=bool(step["transpose_b"]),
        memory_config=step.memory,
        dtype=None if step["dtype"] is None else {"dtype": step["dtype"].mlir},
        program_config=step.config,
        activation=step["activation"],
        compute_kernel_config=step.compute,
    )
    return step.call.name, [step.operand(0), step.operand(1)], keywords


def _unary(step: Step) -> tuple[str, list[Json], Keywords]:
    return step.call.name, [step.operand(0)], _given(memory_config=step.memory)


def _binary(step: Step) -> tuple[str, list[Json], Keywords]:
    second = step.operand(1) or float(step["scalar"])
    data_type = None if step["dtype"] is None else {"dtype": step["dtype"].mlir}
    keywords = _given(dtype=data_type, memory_config=step.memory)
    return step.call.name, [step.operand(0), second], keywords


def _norm(step: Step) -> tuple[str, list[Json], Keywords]:
    keywords = _given(
        epsilon=step["epsilon"],
        weight=step.operand(1),
        bias=step.operand(2),
        memory_config=step.memory,
        program_config=step.config,
        compute_kernel_config=step.compute,
    )
    return step.call.name, [step.operand(0)], keywords


def _attention(step: Step) -> tuple[str, list[Json], Keywords]:
    keywords = _given(
        attn_mask=step.operand(3),
        is_causal=bool(step["is_causal"]),
        scale=step["scale"],
        memory_config=step.memory,
        program_config=step.config,
        compute_kernel_config=step.compute,
    )
    callee = "transformer.scaled_dot_product_attention"
    return callee, [step.operand(index) for index in range(3)], keywords


def _attention_of_one(step: Step) -> tuple[str, list[Json], Keywords]:
    keywords = _given(
        is_causal=bool(step["is_causal"]),
        attn_mask=step.operand(3),
        cur_pos_tensor=step.operand(4),
        attention_sink=step.operand(5),
        scale=step["scale"],
        memory_config=step.memory,
        program_config=step.config,
        compute_kernel_config=step.compute,
    )
    callee = "transformer.scaled_dot_product_attention_decode"
    return callee, [step.operand(index) for index in range(3)], keywords


def _paged_attention_of_one(step: Step) -> tuple[str, list[Json], Keywords]:
    keywords = _given(
        cur_pos_tensor=step.operand(4),
        attention_sink=step.operand(5),
        scale=step["scale"],
        sliding_window_size=step["sliding_window_size"],
        memory_config=step.memory,
        program_config=step.config,
        compute_kernel_config=step.compute,
    )
    callee = "transformer.paged_scaled_dot_product_attention_decode"
    return callee, [step.operand(index) for index in range(4)], keywords


def _paged_update(step: Step) -> tuple[str, list[Json], Keywords]:
    keywords = _given(
        update_idxs_tensor=step.operand(2),
        share_cache=True if step["share_cache"] else None,
        page_table=step.operand(3),
        compute_kernel_config=step.compute,
    )
    return "experimental.paged_update_cache", [step.operand(0), step.operand(1)], keywords


def _create_heads(step: Step) -> tuple[str, list[Json], Keywords]:
    keywords = _given(num_heads=step["num_heads"], num_kv_heads=step["num_kv_heads"])
    return "experimental.nlp_create_qkv_heads_decode", [step.operand(0)], keywords


def _join_heads(step: Step) -> tuple[str, list[Json], Keywords]:
    keywords = _given(num_heads=step["num_heads"])
    return "experimental.nlp_concat_heads_decode", [step.operand(0)], keywords


def _moved(*names: str) -> Callable[[Step], tuple[str, list[Json], Keywords]]:
    def rule(step: Step) -> tuple[str, list[Json], Keywords]:
        values = [step[name] for name in names]
        return (
            step.call.name.removesuffix("_row_major").removesuffix("_static"),
            [step.operand(0), *values],
            _given(memory_config=step.memory),
        )

    return rule


def _concat(step: Step) -> tuple[str, list[Json], Keywords]:
    return "concat", [step.groups[0]], _given(dim=step["dim"], memory_config=step.memory)


def _to_layout(step: Step) -> tuple[str, list[Json], Keywords]:
    page = {"page": step.call.result.layout.value}
    return "to_layout", [step.operand(0), page], _given(memory_config=step.memory)


def _to_memory(step: Step) -> tuple[str, list[Json], Keywords]:
    memory = {"memory": memory_json(step.call.result)}
    return "to_memory_config", [step.operand(0), memory], {}


def _typecast(step: Step) -> tuple[str, list[Json], Keywords]:
    data_type = {"dtype": step.call.result.data_type.mlir}
    return "typecast", [step.operand(0), data_type], _given(memory_config=step.memory)


def _softmax(step: Step) -> tuple[str, list[Json], Keywords]:
    keywords = _given(memory_config=step.memory, compute_kernel_config=step.compute)
    return "softmax", [step.operand(0), step["dimension"]], keywords


def _split(step: Step) -> tuple[str, list[Json], Keywords]:
    keywords = _given(num_heads=step["num_heads"], num_kv_heads=step["num_kv_heads"],
                      transpose_key=bool(step["transpose_key"]))  # fmt: skip
    return (
        "transformer.split_query_key_value_and_split_heads",
        [step.operand(0)],
        keywords,
    )


def _heads(step: Step) -> tuple[str, list[Json], Keywords]:
    return "transformer.concatenate_heads", [step.operand(0)], {}


def _conv2d(step: Step) -> tuple[str, list[Json], Keywords]:
    keywords = _given(
        input_tensor=step.operand(0),
        weight_tensor=step.operand(1),
        bias_tensor=step.operand(2),
        device={"device": None},
        **{
            name: step[name]
            for name in (
                *("in_channels", "out_channels", "batch_size", "input_height", "input_width"),
                *("kernel_size", "stride", "padding", "dilation", "groups"),
            )
        },
        dtype=None if step["dtype"] is None else {"dtype": step["dtype"].mlir},
        conv_config=step.config,
        compute_config=step.compute,
        memory_config=step.memory,
    )
    return "conv2d", [], keywords


_RULES: Mapping[str, Callable[[Step], tuple[str, list[Json], Keywords]]] = {
    **dict.fromkeys(("matmul", "linear"), _product),
    **dict.fromkeys(PLAIN & elementwise(), _unary),
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys(("rms_norm", "layer_norm"), _norm),
    **dict.fromkeys(("reshape", "reshape_row_major"), _moved("shape")),
    "scaled_dot_product_attention": _attention,
    "scaled_dot_product_attention_decode": _attention_of_one,
    "paged_scaled_dot_product_attention_decode": _paged_attention_of_one,
    "paged_update_cache": _paged_update,
    "nlp_create_qkv_heads_decode": _create_heads,
    "nlp_concat_heads_decode": _join_heads,
    "repeat": _moved("repeat_dimensions"),
    "permute": _moved("permutation"),
    "slice_static": _moved("begins", "ends", "step"),
    "concat": _concat,
    "to_layout": _to_layout,
    "to_memory_config": _to_memory,
    "typecast": _typecast,
    "softmax": _softmax,
    "split_query_key_value_and_split_heads": _split,
    "concatenate_heads": _heads,
    "conv2d": _conv2d,
}


def steps(program: file.Program) -> list[Json]:
    """The arguments of a program, then its operations; those that are not judged have no callee
    and give tensors that lie as they should."""
    found = [_made([entry.tensor for entry in program.inputs], program)]
    for operation in program.operations:
        if operation.name == "ttnn.deallocate":
            tensor = {"tensor": operation.operands[0]}
            found.append(
                {"callee": "deallocate", "arguments": [tensor], "keywords": {}, "results": []}
            )
            continue
        made = _made(operation.results, program)
        step = Step(program, operation) if operation.callee is None else None
        rule = None if step is None else _RULES.get(step.call.name)
        if step is not None and rule is not None:
            made["callee"], made["arguments"], made["keywords"] = rule(step)
        found.append(made)
    return found


def _made(tensors: Sequence[int], program: file.Program) -> dict[str, Json]:
    results = [
        {"id": tensor, "type": type_json(program.tensors[tensor].type.placement)}
        for tensor in tensors
    ]
    return {"callee": None, "arguments": [], "keywords": {}, "results": results}
