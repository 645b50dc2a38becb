"""The `ttmetal` dialect: device buffers, and programs that run on cores.

Operands are tensors with a layout or memrefs in a memory space. The ops of 2024 (`alloc`,
`dispatch`, ...) are parsed as well. `enqueue_program` has its kernels in `kernelConfigs`; this
compiler generates `run_program`, with one attribute of typed fields (`ttmetal.programs`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    SymbolRefAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    result_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from ttcodegen.dialects.operations.functions import KERNEL_THREAD
from ttcodegen.dialects.ttcore.device import expect_allocation
from ttcodegen.dialects.ttcore.dialect import system_of
from ttcodegen.dialects.ttcore.layouts import LinearLayout, MetalLayoutAttr
from ttcodegen.dialects.ttcore.tile import MemorySpace, MemorySpaceAttr
from ttcodegen.dialects.ttkernel.attributes import ThreadType, ThreadTypeAttr
from ttcodegen.dialects.ttkernel.configurations import THREADS_OF_CONFIGURATIONS
from ttcodegen.dialects.ttkernel.operation import TTKernelOp, kernel_thread
from ttcodegen.dialects.ttmetal.attributes import (
    THREADS,
    TTMETAL_ATTRIBUTES,
    ComputeConfigAttr,
    CoreRangeAttr,
    EthernetConfigAttr,
    GlobalSemaphoreType,
    NocConfigAttr,
    ProgramSemaphoreType,
)
from ttcodegen.dialects.ttmetal.device_module import ProgramAttr
from ttcodegen.dialects.ttmetal.programs import (
    CIRCULAR_BUFFERS,
    OWN_MEMORY,
    BufferAddress,
    Kernel,
)
from ttcodegen.dialects.ttnn.placement import placement_of
from ttcodegen.systems.description import Pair

_ALL = tuple(MemorySpace)
_DEVICE_MEMORY = (MemorySpace.DRAM, MemorySpace.L1)
_FABRIC_NETWORK = re.compile(r"noc_index\s*=\s*(noc\d)")
"""NoC in the text of a #ttcore.fabric_connection_config."""
_HOST_MEMORY = (MemorySpace.SYSTEM, MemorySpace.MMIO)


def _numbers(array: Attribute | None) -> list[int]:
    """Returns the elements of an array of integers; empty if it is absent."""
    if not isinstance(array, DenseArrayBase):
        return []
    return [int(number) for number in cast("Any", array).iter_values()]


def memory_space_of(type_: Attribute) -> MemorySpace | None:
    """Returns the memory space of a tensor or memref, or None if its type has none."""
    if isinstance(type_, TensorType):
        encoding = cast("TensorType[Attribute]", type_).encoding
        if not isinstance(encoding, MetalLayoutAttr):
            return None
        if not isinstance(encoding.data, LinearLayout):
            return encoding.data.memory_space
        type_ = encoding.data.memref
    if not isinstance(type_, MemRefType):
        return None
    space = cast("MemRefType[Attribute]", type_).memory_space
    return space.data if isinstance(space, MemorySpaceAttr) else None


def _require_space(
    op: Operation, what: str, value: SSAValue, allowed: Sequence[MemorySpace]
) -> None:
    space = memory_space_of(value.type)
    if space is not None and space not in allowed:
        names = " or ".join(s.value for s in allowed)
        raise VerifyException(f"{op.name}: the {what} is in {names} memory, not in {space.value}")


def _require_buffer(
    op: Operation, value: SSAValue, what: str, allowed: Sequence[MemorySpace] = _ALL
) -> None:
    if not isinstance(value.type, TensorType | MemRefType):
        raise VerifyException(f"{op.name}: the {what} is a tensor or memref, not {value.type}")
    _require_space(op, what, value, allowed)


@irdl_op_definition
class CreateBufferOp(IRDLOperation):
    """Allocates a buffer; `address` is absent before allocation."""

    name = "ttmetal.create_buffer"
    address = opt_prop_def(IntegerAttr)
    size = opt_prop_def(IntegerAttr)
    memory_space = opt_prop_def(MemorySpaceAttr)
    virtual_grid_inverse_mapping = opt_prop_def(prop_name="virtualGridInverseMapping")
    virtual_grid_forward_mapping = opt_prop_def(prop_name="virtualGridForwardMapping")
    result = result_def()

    def verify_(self) -> None:
        _verify_allocation(self)


@irdl_op_definition
class AllocOp(IRDLOperation):
    """`create_buffer` as spelled in 2024."""

    name = "ttmetal.alloc"
    address = prop_def(IntegerAttr)
    size = prop_def(IntegerAttr)
    memory_space = prop_def(MemorySpaceAttr)
    result = result_def()

    def verify_(self) -> None:
        _verify_allocation(self)


def _verify_allocation(op: CreateBufferOp | AllocOp) -> None:
    _require_buffer(op, op.result, "result", [op.memory_space.data] if op.memory_space else _ALL)
    expect_allocation(op)


def _verify_words(op: Operation, **numbers: IntegerAttr[Any] | None) -> None:
    """Verifies that numbers are unsigned 64-bit integers."""
    for name, number in numbers.items():
        if number is not None and not 0 <= number.value.data < 1 << 64:
            what = f"'{name}' is a number of 64 bits without a sign"
            raise VerifyException(f"{op.name}: {what}, found {number.value.data}")


class _DeallocationOp(IRDLOperation):
    """Base of ops that deallocate a buffer."""

    input = operand_def()

    def verify_(self) -> None:
        _require_buffer(self, self.input, "input")


@irdl_op_definition
class DeallocateBufferOp(_DeallocationOp):
    """Deallocates a buffer."""

    name = "ttmetal.deallocate_buffer"


@irdl_op_definition
class DeallocOp(_DeallocationOp):
    """`deallocate_buffer` as spelled in 2024."""

    name = "ttmetal.dealloc"


@irdl_op_definition
class ViewOp(IRDLOperation):
    """View of a buffer with another shape; no data moves."""

    name = "ttmetal.view"
    input = operand_def()
    result = result_def()

    def verify_(self) -> None:
        _require_buffer(self, self.input, "input")
        _require_buffer(self, self.result, "result")


class _WriteOp(IRDLOperation):
    """Base of ops that copy from the host to the device."""

    value = opt_prop_def()
    input = opt_operand_def()
    output = operand_def()
    result = opt_result_def()

    def verify_(self) -> None:
        if (self.input is None) == (self.value is None):
            raise VerifyException(f"{self.name} has an input or the attribute 'value'")
        if self.input is not None:
            _require_buffer(self, self.input, "input", _HOST_MEMORY)
        _require_buffer(self, self.output, "output", _DEVICE_MEMORY)


@irdl_op_definition
class EnqueueWriteBufferOp(_WriteOp):
    """Copies a host tensor, or the constant `value`, to the device."""

    name = "ttmetal.enqueue_write_buffer"


@irdl_op_definition
class HostWriteOp(_WriteOp):
    """`enqueue_write_buffer` as spelled in 2024."""

    name = "ttmetal.host_write"


class _ReadOp(IRDLOperation):
    """Base of ops that copy from the device to the host, into an existing or a new buffer."""

    input = operand_def()
    output = opt_operand_def()
    result = opt_result_def()

    def verify_(self) -> None:
        _require_buffer(self, self.input, "input", _DEVICE_MEMORY)
        if self.output is not None:
            _require_buffer(self, self.output, "output", _HOST_MEMORY)
        elif self.result is None:
            raise VerifyException(f"{self.name} has neither an output nor a result")


@irdl_op_definition
class EnqueueReadBufferOp(_ReadOp):
    """Copies a device buffer to the host."""

    name = "ttmetal.enqueue_read_buffer"


@irdl_op_definition
class HostReadOp(_ReadOp):
    """`enqueue_read_buffer` as spelled in 2024."""

    name = "ttmetal.host_read"


def _verify_regions(
    op: Operation, kernels: Sequence[Region], threads: Sequence[ThreadType | None]
) -> None:
    """Verifies kernels that are regions: one for each thread, with ops that it can run."""
    if len(kernels) != len(threads):
        raise VerifyException(f"{op.name} has {len(kernels)} kernels, but {len(threads)} threads")
    for kernel, thread in zip(kernels, threads, strict=True):
        for inner in kernel.walk():
            if isinstance(inner, TTKernelOp) and thread not in (None, *inner.definition.threads):
                raise VerifyException(
                    f"{op.name}: a kernel of the thread {thread} has the op {inner.name}"
                )


@irdl_op_definition
class EnqueueProgramOp(IRDLOperation):
    """Runs kernels on cores.

    Operands are buffers, semaphores and scalars, then circular buffers, divided by
    `operandSegmentSizes`. `cb_ports` has the index of each circular buffer. Until mid-2025 kernels
    were regions.
    """

    name = "ttmetal.enqueue_program"
    arguments = var_operand_def()
    kernel_configs = opt_prop_def(ArrayAttr, prop_name="kernelConfigs")
    cb_ports = opt_prop_def(DenseArrayBase)
    core_ranges = opt_prop_def(ArrayAttr)
    fabric_configs = opt_prop_def(ArrayAttr, prop_name="fabricConnectionConfigs")
    segments = opt_prop_def(DenseArrayBase, prop_name="operandSegmentSizes")
    kernels = var_region_def()
    outputs = var_result_def()

    @property
    def circular_buffers(self) -> int:
        """Number of trailing operands that are circular buffers, or outputs."""
        sizes = _numbers(self.segments)
        return sizes[-1] if len(sizes) > 1 else 0

    def verify_(self) -> None:
        if self.segments is not None:
            sizes = _numbers(self.segments)
            if sum(sizes) != len(self.arguments):
                raise VerifyException(
                    f"{self.name} has {len(self.arguments)} operands, but its segments {sum(sizes)}"
                )
        for operand in self.arguments:
            _require_space(self, "operand of a program", operand, _DEVICE_MEMORY)
        if self.kernel_configs is None:
            raise VerifyException(f"{self.name} needs the attribute 'kernelConfigs'")
        self._verify_ports()
        if self.kernels:
            threads = [THREADS_OF_CONFIGURATIONS.get(type(c)) for c in self.kernel_configs.data]
            _verify_regions(self, self.kernels, threads)
        else:
            self._verify_kernels()

    def _verify_ports(self) -> None:
        if self.cb_ports is None:
            return
        ports = _numbers(self.cb_ports)
        if self.segments is not None and len(ports) != self.circular_buffers:
            raise VerifyException(
                f"{self.name} has {self.circular_buffers} circular buffers, but {len(ports)} ports"
            )
        if len(set(ports)) != len(ports):
            raise VerifyException(f"{self.name}: two circular buffers have the same port")
        for port in ports:
            if not 0 <= port < CIRCULAR_BUFFERS:
                raise VerifyException(
                    f"{self.name}: port {port} of a circular buffer is not one of 0 to "
                    f"{CIRCULAR_BUFFERS - 1}"
                )

    def _verify_kernels(self) -> None:
        assert self.kernel_configs is not None
        processors: dict[int, str] = {}
        for config in self.kernel_configs.data:
            if not isinstance(config, ComputeConfigAttr | NocConfigAttr | EthernetConfigAttr):
                raise VerifyException(
                    f"{self.name}: a kernel is a #ttmetal.compute_config, noc_config or "
                    f"ethernet_config, not {config}"
                )
            place = config.data.place
            for argument in place.arguments.all:
                if not 0 <= argument.operand_index < len(self.arguments):
                    raise VerifyException(
                        f"{self.name}: @{place.kernel} takes an argument from operand "
                        f"{argument.operand_index}, but there are {len(self.arguments)}"
                    )
            if isinstance(config, NocConfigAttr):
                self._verify_fabric(config)
                other = processors.setdefault(config.data.processor, place.kernel)
                if other != place.kernel and _overlap(self.kernel_configs, config):
                    raise VerifyException(
                        f"{self.name}: @{other} and @{place.kernel} run on the same data-movement "
                        f"processor {config.data.processor} of a core"
                    )
        self._verify_functions(self.kernel_configs.data)

    def _verify_fabric(self, config: NocConfigAttr) -> None:
        kernel, entry = config.data, config.data.fabric
        known = () if self.fabric_configs is None else self.fabric_configs.data
        if entry is None:
            return
        where = f"{self.name}: @{kernel.place.kernel} has the fabric_config_index {entry}, but "
        if not 0 <= entry < len(known):
            raise VerifyException(f"{where}there are {len(known)} fabricConnectionConfigs")
        network = _FABRIC_NETWORK.search(str(known[entry]))
        if network is not None and network[1] != kernel.noc.value:
            raise VerifyException(f"{where}runs on {kernel.noc.value}, and that on {network[1]}")

    def _verify_functions(self, configs: Sequence[Attribute]) -> None:
        """Verifies that the kernels are in the module, and their cores on its chip."""
        module = self.get_toplevel_object()
        if not isinstance(module, ModuleOp):
            return
        functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}
        system = system_of(module)
        grid = None if system is None else system.chip.grid
        faults = [
            fault
            for config in configs
            if isinstance(config, ComputeConfigAttr | NocConfigAttr | EthernetConfigAttr)
            for fault in _kernel_faults(config, functions, grid)
        ]
        if faults:
            raise VerifyException(f"{self.name}: {'; '.join(faults)}")


def _kernel_faults(
    config: ComputeConfigAttr | NocConfigAttr | EthernetConfigAttr,
    kernels: Mapping[str, FuncOp],
    grid: Pair | None,
) -> list[str]:
    """Returns errors of a kernel against the functions of its module and the grid of a chip."""
    place = config.data.place
    faults: list[str] = []
    kernel = kernels.get(place.kernel)
    if kernel is None:
        faults.append(f"there is no kernel @{place.kernel}")
    elif KERNEL_THREAD not in kernel.attributes:
        faults.append(f"@{place.kernel} is no kernel: it has no attribute '{KERNEL_THREAD}'")
    elif (thread := kernel_thread(kernel)) is not THREADS[type(config)]:
        faults.append(
            f"@{place.kernel} is a kernel of the thread {thread.value}, not of the thread "
            f"{THREADS[type(config)].value}"
        )
    ends = map(sum, zip(place.cores.offset, place.cores.size, strict=True))
    if grid is not None and any(end > side for end, side in zip(ends, grid, strict=True)):
        faults.append(f"{place.cores} is not on the chip, which has {grid[0]}x{grid[1]} cores")
    return faults


def _overlap(configs: ArrayAttr[Attribute], config: NocConfigAttr) -> bool:
    """Returns whether another data movement kernel shares a processor of a core with this one."""
    cores = config.data.place.cores
    for other in configs.data:
        if other is config or not isinstance(other, NocConfigAttr):
            continue
        if other.data.processor == config.data.processor:
            found = other.data.place.cores
            sides = zip(found.offset, found.size, cores.offset, cores.size, strict=True)
            if all(a < b + m and b < a + n for a, n, b, m in sides):
                return True
    return False


@irdl_op_definition
class DispatchOp(IRDLOperation):
    """`enqueue_program` as spelled in 2024: kernels are regions, one for each thread."""

    name = "ttmetal.dispatch"
    arguments = var_operand_def()
    core_ranges = prop_def(ArrayAttr)
    thread_types = opt_prop_def(ArrayAttr, prop_name="threadTypes")
    kernel_configs = opt_prop_def(ArrayAttr, prop_name="kernelConfigs")
    operand_cb_port_mapping = opt_prop_def()
    segments = opt_prop_def(DenseArrayBase, prop_name="operandSegmentSizes")
    kernels = var_region_def()
    outputs = var_result_def()

    def verify_(self) -> None:
        for range_ in self.core_ranges.data:
            if not isinstance(range_, CoreRangeAttr):
                raise VerifyException(f"{self.name}: {range_} is no #ttmetal.core_range")
        threads = () if self.thread_types is None else self.thread_types.data
        if any(not isinstance(thread, ThreadTypeAttr) for thread in threads):
            raise VerifyException(f"{self.name}: 'threadTypes' are #ttkernel.thread")
        if threads and len(self.core_ranges.data) != len(self.kernels):
            raise VerifyException(
                f"{self.name} has {len(self.kernels)} kernels, but {len(self.core_ranges.data)} "
                "core_ranges"
            )
        if threads:
            kinds = [t.data.kind for t in threads if isinstance(t, ThreadTypeAttr)]
            _verify_regions(self, self.kernels, kinds)
        elif self.kernel_configs is not None:
            found = [THREADS_OF_CONFIGURATIONS.get(type(c)) for c in self.kernel_configs.data]
            _verify_regions(self, self.kernels, found)


@irdl_op_definition
class RunProgramOp(IRDLOperation):
    """Runs a device program on buffers: inputs, then outputs.

    `meaning` is the symbol of a TTIR function with the semantics of the program. `verify_programs`
    (`program_verification`) checks that the module has this function and the kernels.
    """

    name = "ttmetal.run_program"
    buffers = var_operand_def()
    program = prop_def(ProgramAttr)
    meaning = prop_def(SymbolRefAttr)

    def verify_(self) -> None:
        for operand in self.buffers:
            _require_space(self, "operand of a program", operand, _DEVICE_MEMORY)
        program = self.program.data
        count = len(self.buffers)
        if not 0 <= program.inputs <= count:
            raise VerifyException(
                f"{self.name} has {count} operands, but '{program.name}' has {program.inputs} "
                "inputs"
            )
        if len(program.traffic) not in (0, count):
            raise VerifyException(
                f"{self.name} has {count} operands, but '{program.name}' says what it moves of "
                f"{len(program.traffic)}"
            )
        for buffer in program.circular_buffers:
            if not OWN_MEMORY <= buffer.operand < count:
                raise VerifyException(
                    f"{self.name}: the circular buffer '{buffer.name}' of '{program.name}' is in "
                    f"operand {buffer.operand}, but there are {count}"
                )
            if buffer.is_alias and placement_of(self.buffers[buffer.operand]).shards is None:
                raise VerifyException(
                    f"{self.name}: the circular buffer '{buffer.name}' of '{program.name}' is in "
                    f"operand {buffer.operand}, which is not in shards"
                )
        for kernel in program.kernels:
            for operand in (*kernel.accessors, *_addressed(kernel)):
                if not 0 <= operand < count:
                    raise VerifyException(
                        f"{self.name}: kernel '{kernel.name}' of '{program.name}' uses operand "
                        f"{operand}, but there are {count}"
                    )


def _addressed(kernel: Kernel) -> Iterator[int]:
    """Yields the operands whose addresses a kernel gets."""
    for argument in kernel.arguments:
        if isinstance(argument.value, BufferAddress):
            yield argument.value.operand


@irdl_op_definition
class FinishOp(IRDLOperation):
    """Waits for all commands."""

    name = "ttmetal.finish"


@irdl_op_definition
class CreateGlobalSemaphoreOp(IRDLOperation):
    """Creates a semaphore at `address` on all cores of a range, on all devices."""

    name = "ttmetal.create_global_semaphore"
    address = prop_def(IntegerAttr)
    initial_value = opt_prop_def(IntegerAttr)
    core_range = prop_def(CoreRangeAttr)
    result = result_def(GlobalSemaphoreType)

    def verify_(self) -> None:
        _verify_words(self, address=self.address, initial_value=self.initial_value)


@irdl_op_definition
class ResetGlobalSemaphoreOp(IRDLOperation):
    """Sets a global semaphore to `value`."""

    name = "ttmetal.reset_global_semaphore"
    value = prop_def(IntegerAttr)
    semaphore = operand_def(GlobalSemaphoreType)

    def verify_(self) -> None:
        _verify_words(self, value=self.value)


@irdl_op_definition
class CreateLocalSemaphoreOp(IRDLOperation):
    """Creates a semaphore on the cores of the programs that use it."""

    name = "ttmetal.create_local_semaphore"
    initial_value = opt_prop_def(IntegerAttr)
    result = result_def(ProgramSemaphoreType)

    def verify_(self) -> None:
        _verify_words(self, initial_value=self.initial_value)


@irdl_op_definition
class MeshShardOp(IRDLOperation):
    """Divides a host tensor into device shards, or assembles it."""

    name = "ttmetal.mesh_shard"
    input = operand_def()
    shard_type = prop_def()
    shard_direction = prop_def()
    shard_shape = prop_def(DenseArrayBase)
    shard_dims = prop_def(DenseArrayBase)
    result = result_def()

    def verify_(self) -> None:
        _require_buffer(self, self.input, "input")
        _require_buffer(self, self.result, "result")
        if min(_numbers(self.shard_shape), default=1) < 1:
            raise VerifyException(f"{self.name}: 'shard_shape' is positive")


TTMETAL_OPS: list[type[Operation]] = [
    AllocOp,
    CreateBufferOp,
    CreateGlobalSemaphoreOp,
    CreateLocalSemaphoreOp,
    DeallocOp,
    DeallocateBufferOp,
    DispatchOp,
    EnqueueProgramOp,
    EnqueueReadBufferOp,
    EnqueueWriteBufferOp,
    FinishOp,
    HostReadOp,
    HostWriteOp,
    MeshShardOp,
    ResetGlobalSemaphoreOp,
    RunProgramOp,
    ViewOp,
]


@cache
def ttmetal_dialect() -> Dialect:
    """Returns the dialect."""
    return Dialect("ttmetal", TTMETAL_OPS, [*TTMETAL_ATTRIBUTES, ProgramAttr])
