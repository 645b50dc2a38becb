"""Export of modules that compute gradients, with `torch.func.grad` for instance.

`torch.export` cannot record them. A trace of the module can: it has the operations of the gradients
as those of the forward pass, and is exported in the module's place.
"""

from __future__ import annotations

import copy
import functools
import importlib
import traceback
from pathlib import PurePath
from typing import Any

_REASONS = ("functorch tensor", "doesn't have storage", "does not require grad")
"""Parts of torch.export's errors for modules that compute gradients."""


_TRANSFORMS = (
    "torch/_functorch/apis.py",
    "torch/_functorch/eager_transforms.py",
    "torch/autograd/__init__.py",
    "torch/autograd/functional.py",
)
"""Files of the functions that compute gradients of functions, and map them over batches."""


def computes_gradients(error: BaseException) -> bool:
    """Returns whether an error of torch.export is due to gradients in the module.

    Below transforms of functions, one in another above all, it ends with errors of any kind.
    """
    if any(reason in str(error) for reason in _REASONS):
        return True
    frames = traceback.extract_tb(error.__traceback__)
    return any(PurePath(f.filename).as_posix().endswith(_TRANSFORMS) for f in frames)


def traced_module(torch: Any, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Module whose function is the trace of an example.

    Parameters and buffers are the module's, by name, and are mutated likewise.

    Raises:
        Exception: of any kind, from the module or torch, if the control flow depends on values.
    """
    proxies = importlib.import_module("torch.fx.experimental.proxy_tensor")

    def called(tensors: dict[str, Any], args: Any, kwargs: Any) -> Any:
        return torch.func.functional_call(module, tensors, args, kwargs)

    def own(value: Any) -> Any:
        return value.detach().clone() if isinstance(value, torch.Tensor) else value

    held = {name: own(each) for name, each in _tensors(module).items()}
    given = torch.utils._pytree.tree_map(own, (args, kwargs))
    # Fused attention has a gradient kernel that is no composition.
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        graph = proxies.make_fx(torch.func.functionalize(called), _allow_non_fake_inputs=True)(
            held, *given
        )
    # Shares parameters and submodules with the module.
    found = copy.copy(module)

    @functools.wraps(module.forward)
    def forward(*args: Any, **kwargs: Any) -> Any:
        return graph(_tensors(found), args, kwargs)

    found.forward = forward
    return found


def _tensors(module: Any) -> dict[str, Any]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def ordinary_module(torch: Any, module: Any) -> Any:
    """Module of a joint graph program, of loss and gradients; other modules unchanged.

    It returns a pair: the program's result, and the gradients of parameters and inputs by name.
    """
    if not isinstance(module, torch.export.ExportedProgram):
        return module
    kinds = {spec.kind.name for spec in module.graph_signature.output_specs}
    return _joint_class(torch)(module) if _GRADIENTS & kinds else module


_GRADIENTS = {"GRADIENT_TO_PARAMETER", "GRADIENT_TO_USER_INPUT"}


@functools.cache
def _joint_class(torch: Any) -> Any:
    class Joint(torch.nn.Module):
        """Module of a program's parameters, buffers and graph."""

        def __init__(self, program: Any) -> None:
            torch.nn.Module.__init__(self)
            signature = program.graph_signature
            self.graph = program.graph_module
            self.inputs = [(s.kind.name, s.target) for s in signature.input_specs]
            self.outputs = [(s.kind.name, s.target) for s in signature.output_specs]
            self.result = program.call_spec.out_spec
            self.constants = dict(program.constants)
            for name, value in program.state_dict.items():
                self._hold(name, value, isinstance(value, torch.nn.Parameter))

        def _hold(self, name: str, value: Any, is_parameter: bool) -> None:
            holder: Any = self
            *path, last = name.split(".")
            for part in path:
                if not hasattr(holder, part):
                    holder.add_module(part, torch.nn.Module())
                holder = getattr(holder, part)
            held = value.detach().clone()
            if is_parameter:
                holder.register_parameter(last, torch.nn.Parameter(held, requires_grad=False))
            else:
                holder.register_buffer(last, held)

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            held = {**self.constants, **_tensors(self)}
            given = iter(torch.utils._pytree.tree_leaves((args, kwargs)))
            found = self.graph(
                *(
                    next(given) if kind == "USER_INPUT" else held[target]
                    for kind, target in self.inputs
                )
            )
            results: list[Any] = []
            gradients: dict[str, Any] = {}
            for (kind, target), value in zip(self.outputs, found, strict=True):
                if kind in _GRADIENTS:
                    gradients[target] = value
                elif kind == "BUFFER_MUTATION":
                    held[target].copy_(value)
                else:
                    results.append(value)
            return torch.utils._pytree.tree_unflatten(results, self.result), gradients

    return Joint
