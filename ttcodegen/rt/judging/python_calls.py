"""Calls of a program as those of the Python package of ttnn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, cast

from xdsl.dialects.func import FuncOp

from ttcodegen.dialects.operations.compute_config import ComputeConfig
from ttcodegen.dialects.ttcore.shards import CoreRange
from ttcodegen.dialects.ttnn.placement import TensorPlacement
from ttcodegen.dialects.ttnn.program_configs import (
    Conv2dConfig,
    CoreGrid,
    CoreSet,
    FusedActivation,
    ProgramConfig,
    Word,
)
from ttcodegen.flatbuffer import program as file
from ttcodegen.flatbuffer.modules import module_of
from ttcodegen.ops.elementwise.activations import ACTIVATION_PARAMETERS
from ttcodegen.optimizer.call import LibraryCall, call_in_file
from ttcodegen.optimizer.overrides.overrides import CallNames
from ttcodegen.optimizer.rewrites import elementwise
from ttcodegen.transforms.rewriting import body_of

# What a call of a program consists of, in the form that the judge reads: JSON.

Json = Any


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
        """The operand of that index in the definition, None if it is absent."""
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
    """The placement of a tensor."""
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
    """The layout of a tensor."""
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


# The calls of a program as the Python package of ttnn takes them: which operands and attributes.
#
# The names of the keywords are those of the bindings of tt-metal.

Source = int | str | Callable[[Step], Json]
"""Source of an argument: the operand of that index in the definition, the attribute of that name,
or a derived value."""


@dataclass(frozen=True)
class PythonCall:
    """A call: its arguments by position, then those by name, of which absent ones are left out."""

    positional: tuple[Source, ...] = ()
    keywords: Mapping[str, Source] = field(default_factory=dict[str, Source])
    callee: str = ""
    """Callee, if it is not the name of the op."""

    def written(self, step: Step) -> tuple[str, list[Json], dict[str, Json]]:
        """The function, its arguments by position and by name."""
        named = {key: _value(step, source) for key, source in self.keywords.items()}
        return (
            self.callee or step.call.name,
            [_value(step, source) for source in self.positional],
            {key: value for key, value in named.items() if value is not None},
        )


def _value(step: Step, source: Source) -> Json:
    if isinstance(source, int):
        return step.operand(source)
    return step[source] if isinstance(source, str) else source(step)


def _memory(step: Step) -> Json:
    """The memory configuration of the result, None where nothing is passed."""
    return step.memory


def _place(step: Step) -> Json:
    """The same, where it is always passed."""
    return {"memory": memory_json(step.call.result)}


def _compute(step: Step) -> Json:
    return step.compute


def _config(step: Step) -> Json:
    return step.config


def _device(step: Step) -> Json:
    return {"device": None}


def _page(step: Step) -> Json:
    return {"page": step.call.result.layout.value}


def _result_type(step: Step) -> Json:
    return {"dtype": step.call.result.data_type.mlir}


def _asked_type(step: Step) -> Json:
    """The data type that the call requests, None if it requests none."""
    return None if step["dtype"] is None else {"dtype": step["dtype"].mlir}


def _flag(name: str) -> Callable[[Step], bool]:
    return lambda step: bool(step[name])


def _tensor_or_number(place: int, attribute: str) -> Callable[[Step], Json]:
    """The operand of that index, where there is none the number of that name."""

    def source(step: Step) -> Json:
        tensor = step.operand(place)
        return float(step[attribute]) if tensor is None else tensor

    return source


def _first_group(step: Step) -> Json:
    return step.groups[0]


def _amounts(step: Step) -> Json:
    """Pairs of what is added before and after, by dimension."""
    flat = step["padding"]
    return [{"pair": list(pair)} for pair in zip(flat[::2], flat[1::2], strict=True)]


def _shared(step: Step) -> Json:
    return True if step["share_cache"] else None


def _reduction(step: Step) -> Json:
    """Reduction of scattered numbers with those that are there, None if they replace them."""
    return {"sum": "add", "prod": "multiply"}.get(step["scatter_reduce_type"])


def _activations(step: Step) -> Json:
    """The activation of a sum, as a list; None if it has none."""
    name = step["activation"]
    if name is None:
        return None
    return [{"activation": [name, list(ACTIVATION_PARAMETERS.get(name, ()))]}]


_PLACED: Mapping[str, Source] = {"memory_config": _memory}
_COMPUTED: Mapping[str, Source] = {**_PLACED, "compute_kernel_config": _compute}
_CONFIGURED: Mapping[str, Source] = {**_COMPUTED, "program_config": _config}
_UNARY = PythonCall((0,), _PLACED)
_BINARY = PythonCall(
    (0, _tensor_or_number(1, "scalar")),
    {"dtype": _asked_type, "activations": _activations, **_PLACED},
)
_PRODUCT = PythonCall(
    (0, 1),
    {
        "bias": 2,
        "transpose_a": _flag("transpose_a"),
        "transpose_b": _flag("transpose_b"),
        "dtype": _asked_type,
        "activation": "activation",
        **_CONFIGURED,
    },
)
_NORM = PythonCall((0,), {"epsilon": "epsilon", "weight": 1, "bias": 2, **_CONFIGURED})
_REDUCED = PythonCall((0,), {"dim": "dim_arg", "keepdim": _flag("keep_dim"), **_COMPUTED})
_ALONG = PythonCall((0,), {"dim": "dim", "keepdim": _flag("keep_dim"), **_PLACED})
_SUMMED_UP = PythonCall((0, "dim"), {"dtype": _asked_type})
_OF_ONE: Mapping[str, Source] = {
    "cur_pos_tensor": 4,
    "attention_sink": 5,
    "scale": "scale",
    **_CONFIGURED,
}
_PADDED = PythonCall((0, _amounts), {"value": "value", **_PLACED}, "pad")
_RESHAPED = PythonCall((0, "shape"), _PLACED, "reshape")
_IMAGE: Mapping[str, Source] = {
    name: name
    for name in (
        *("in_channels", "out_channels", "batch_size", "input_height", "input_width"),
        *("kernel_size", "stride", "padding", "dilation", "groups"),
    )
}
_CONVOLUTION: Mapping[str, Source] = {
    "input_tensor": 0,
    "weight_tensor": 1,
    "bias_tensor": 2,
    "device": _device,
    **_IMAGE,
    "dtype": _asked_type,
    "conv_config": _config,
    "compute_config": _compute,
    **_PLACED,
}
_PREPARATION: Mapping[str, Source] = {
    "device": _device,
    **_IMAGE,
    "input_memory_config": lambda step: {"memory": memory_json(step["image"])},
    "input_layout": lambda step: {"page": step["image"].layout.value},
    "input_dtype": lambda step: {"dtype": step["image"].data_type.mlir},
    "output_dtype": _asked_type,
    "conv_config": lambda step: config_json(
        step.call.program_config
        or Conv2dConfig(weights_dtype=Word(step.call.result.data_type.mlir))
    ),
    "compute_config": _compute,
}
_POOL: Mapping[str, Source] = {
    "input_tensor": 0,
    "batch_size": "batch_size",
    "input_h": "input_height",
    "input_w": "input_width",
    "channels": "channels",
    "kernel_size": "kernel_size",
    "stride": "stride",
    "padding": "padding",
    "ceil_mode": _flag("ceil_mode"),
    # By default the library leaves its result in L1, in shards.
    "memory_config": _place,
}
_MAXIMUM: Mapping[str, Source] = {**_POOL, "dilation": "dilation"}

CALLS: Mapping[str, PythonCall] = {
    **dict.fromkeys(elementwise(), _UNARY),
    **dict.fromkeys(
        """
        add subtract multiply divide maximum minimum eq ne lt le gt ge pow logical_and logical_or
        logical_xor remainder
        """.split(),
        _BINARY,
    ),
    **dict.fromkeys(
        """
        atan2 bitwise_and bitwise_or bitwise_xor logical_left_shift logical_right_shift
        bitwise_right_shift
        """.split(),
        PythonCall((0, 1), _PLACED),
    ),
    "where": PythonCall(
        (0, _tensor_or_number(1, "true_value"), _tensor_or_number(2, "false_value")), _PLACED
    ),
    "clamp_scalar": PythonCall((0, "min", "max"), _PLACED, "clamp"),
    "clamp_tensor": PythonCall((0, 1, 2), _PLACED, "clamp"),
    "typecast": PythonCall((0, _result_type), _PLACED),
    "clone": PythonCall((0,), _PLACED),
    **dict.fromkeys(("matmul", "linear"), _PRODUCT),
    **dict.fromkeys(("rms_norm", "layer_norm"), _NORM),
    "softmax": PythonCall((0, "dimension"), _COMPUTED),
    "batch_norm_inference": PythonCall(
        (0,),
        {
            "running_mean": 1,
            "running_var": 2,
            "weight": 3,
            "bias": 4,
            "eps": "epsilon",
            **_COMPUTED,
        },
        "batch_norm",
    ),
    **dict.fromkeys(("sum", "mean", "max", "min"), _REDUCED),
    **dict.fromkeys(("prod", "argmax"), _ALONG),
    **dict.fromkeys(("cumsum", "cumprod"), _SUMMED_UP),
    "sort": PythonCall((0,), {"dim": "dim", "descending": _flag("descending"), **_PLACED}),
    "topk": PythonCall(
        (0, "k", "dim"), {"largest": _flag("largest"), "sorted": _flag("sorted"), **_PLACED}
    ),
    # Attention and caches.
    "scaled_dot_product_attention": PythonCall(
        (0, 1, 2),
        {"attn_mask": 3, "is_causal": _flag("is_causal"), "scale": "scale", **_CONFIGURED},
        "transformer.scaled_dot_product_attention",
    ),
    "scaled_dot_product_attention_decode": PythonCall(
        (0, 1, 2),
        {"is_causal": _flag("is_causal"), "attn_mask": 3, **_OF_ONE},
        "transformer.scaled_dot_product_attention_decode",
    ),
    "paged_scaled_dot_product_attention_decode": PythonCall(
        (0, 1, 2, 3),
        {"sliding_window_size": "sliding_window_size", **_OF_ONE},
        "transformer.paged_scaled_dot_product_attention_decode",
    ),
    "paged_update_cache": PythonCall(
        (0, 1),
        {
            "update_idxs_tensor": 2,
            "share_cache": _shared,
            "page_table": 3,
            "compute_kernel_config": _compute,
        },
        "experimental.paged_update_cache",
    ),
    "fill_cache": PythonCall((0, 1, "batch_offset")),
    "nlp_create_qkv_heads_decode": PythonCall(
        (0,),
        {"num_heads": "num_heads", "num_kv_heads": "num_kv_heads"},
        "experimental.nlp_create_qkv_heads_decode",
    ),
    "nlp_concat_heads_decode": PythonCall(
        (0,), {"num_heads": "num_heads"}, "experimental.nlp_concat_heads_decode"
    ),
    "split_query_key_value_and_split_heads": PythonCall(
        (0,),
        {
            "kv_input_tensor": 1,
            "num_heads": "num_heads",
            "num_kv_heads": "num_kv_heads",
            "transpose_key": _flag("transpose_key"),
        },
        "transformer.split_query_key_value_and_split_heads",
    ),
    "concatenate_heads": PythonCall((0,), {}, "transformer.concatenate_heads"),
    # Movement.
    **dict.fromkeys(("reshape", "reshape_row_major"), _RESHAPED),
    **dict.fromkeys(("pad", "pad_row_major"), _PADDED),
    "repeat": PythonCall((0, "repeat_dimensions"), _PLACED),
    "repeat_interleave": PythonCall((0, "repeats", "dim"), _PLACED),
    "permute": PythonCall((0, "permutation"), _PLACED),
    "slice_static": PythonCall((0, "begins", "ends", "step"), _PLACED, "slice"),
    "concat": PythonCall((_first_group,), {"dim": "dim", **_PLACED}),
    "gather": PythonCall((0, "dim", 1), _PLACED),
    "scatter": PythonCall((0, "dim", 1, 2), {"reduce": _reduction, **_PLACED}),
    "embedding": PythonCall((0, 1), _PLACED),
    "to_layout": PythonCall((0, _page), _PLACED),
    "to_memory_config": PythonCall((0, _place)),
    "from_device": PythonCall((0,)),
    # Images.
    "conv2d": PythonCall((), _CONVOLUTION),
    "prepare_conv2d_weights": PythonCall(
        (),
        {
            **_PREPARATION,
            "weight_tensor": 0,
            "weights_format": lambda step: "OIHW",
            "has_bias": _flag("has_bias"),
        },
        "prepare_conv_weights",
    ),
    "prepare_conv2d_bias": PythonCall((), {**_PREPARATION, "bias_tensor": 0}, "prepare_conv_bias"),
    "conv_transpose2d": PythonCall((), {**_CONVOLUTION, "output_padding": "output_padding"}),
    "max_pool2d": PythonCall((), _MAXIMUM),
    "max_pool2d_with_indices": PythonCall(
        (), {**_MAXIMUM, "return_indices": lambda step: True}, "max_pool2d"
    ),
    "avg_pool2d": PythonCall(
        (),
        {
            **_POOL,
            "count_include_pad": _flag("count_include_pad"),
            "compute_kernel_config": _compute,
        },
    ),
    "upsample": PythonCall((0, "scale_factor")),
}


def steps(program: file.Program) -> list[Json]:
    """The arguments of a program, then its operations; those that are not judged have no callee
    and give tensors with the right layout."""
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
        call = None if step is None else CALLS.get(step.call.name)
        if step is not None and call is not None:
            made["callee"], made["arguments"], made["keywords"] = call.written(step)
        found.append(made)
    return found


TAKE = "take"
"""A step whose results are tensors that other steps gave."""
NO_CALLS = (None, "deallocate", TAKE)
"""Steps that call no op of the library."""


def joined_steps(programs: Sequence[file.Program]) -> list[list[Json]]:
    """The steps of programs that run one after another on the same device.

    Where one calls a program before it, it takes the tensors that this gave, as they are: prepared
    weights have a padding that their type does not say.
    """
    joined: list[list[Json]] = []
    outputs: dict[str, list[int]] = {}
    first = 0
    for program in programs:
        numbers = {tensor: first + tensor for tensor in range(len(program.tensors))}
        own = cast("list[dict[str, Json]]", _renumbered(steps(program), numbers))
        for step, operation in zip(own[1:], program.operations, strict=True):
            if operation.callee in outputs:
                given = outputs[operation.callee]
                step["callee"], step["arguments"] = TAKE, [{"tensor": each} for each in given]
        outputs[program.name] = [numbers[output.tensor] for output in program.outputs]
        joined.append(cast("list[Json]", own))
        first += len(program.tensors)
    return joined


def named_operations(
    binary: file.Binary,
) -> dict[tuple[str, str], tuple[file.Program, file.Operation]]:
    """The operations of a file by their program and the name of what they make."""
    found: dict[tuple[str, str], tuple[file.Program, file.Operation]] = {}
    for function in module_of(binary).walk():
        if isinstance(function, FuncOp) and function.body.blocks:
            names = CallNames(function)
            program = binary.program(names.function)
            for operation, op in zip(program.operations, body_of(function).ops, strict=False):
                if op in names:
                    found[names.function, names[op]] = (program, operation)
    return found


_TENSORS = 1000
"""Most tensors of one call."""


def steps_of_call(
    program: file.Program, operation: file.Operation, call: LibraryCall, number: int
) -> list[Json]:
    """Steps that make the operands of one operation, call it in another form, and forget its
    tensors; none if it is not judged.

    Args:
        program: the program of the operation.
        operation: the operation.
        call: its form.
        number: that of the call among others, which have other tensors.
    """
    known = CALLS.get(call.name)
    tensors = dict.fromkeys([*operation.operands, *operation.results])
    given = dict(zip([*operation.operands, *operation.results],
                     [*call.operands, *call.results], strict=False))  # fmt: skip
    if known is None or len(given) < len(tensors) or len(tensors) > _TENSORS:
        return []
    numbers = {tensor: number * _TENSORS + place for place, tensor in enumerate(tensors)}

    def made(listed: Sequence[int]) -> dict[str, Json]:
        results = [{"id": numbers[t], "type": type_json(given[t])} for t in dict.fromkeys(listed)]
        return {"callee": None, "arguments": [], "keywords": {}, "results": results}

    step = Step(program, operation)
    step.call = call
    called = made(operation.results)
    callee, arguments, keywords = known.written(step)
    called["callee"] = callee
    called["arguments"], called["keywords"] = (
        _renumbered(each, numbers) for each in (arguments, keywords)
    )
    forgotten: list[Json] = [
        {
            "callee": "deallocate",
            "arguments": [{"tensor": each}],
            "keywords": {},
            "results": [],
        }
        for each in numbers.values()
    ]
    return [made(operation.operands), called, *forgotten]


def _renumbered(spec: Json, numbers: Mapping[int, int]) -> Json:
    """An argument with other numbers of tensors."""
    if isinstance(spec, list):
        return [_renumbered(each, numbers) for each in cast("list[Json]", spec)]
    if isinstance(spec, dict):
        given = cast("dict[str, Json]", spec)
        return {
            key: numbers[value] if key in ("tensor", "id") else _renumbered(value, numbers)
            for key, value in given.items()
        }
    return spec


def _made(tensors: Sequence[int], program: file.Program) -> dict[str, Json]:
    results = [
        {"id": tensor, "type": type_json(program.tensors[tensor].type.placement)}
        for tensor in tensors
    ]
    return {"callee": None, "arguments": [], "keywords": {}, "results": results}
