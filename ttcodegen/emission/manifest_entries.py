"""Entries of manifest.json: device programs, kernel settings, and the lines of C++ of each op."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ttcodegen.conversions.mesh import (
    EXCHANGE_KERNEL,
    ChipExchange,
    called_on_cpu,
    chip_exchanges,
    composed_by_host,
)
from ttcodegen.conversions.ttir_to_ttnn import cpu_functions
from ttcodegen.conversions.ttmetal_to_emitc.recording import SharedProgram, share_programs
from ttcodegen.dialects.operations.functions import callee_of
from ttcodegen.dialects.operations.operation import CatalogueOp, operation_name
from ttcodegen.dialects.ttcore.device import declared_mesh
from ttcodegen.dialects.ttcore.shards import CoreRange, Layout
from ttcodegen.dialects.ttcore.tile import TILE_FORMATS, TILE_SIDE
from ttcodegen.dialects.ttmetal.device_module import (
    DeviceProgram,
    device_programs,
    functions_of,
    is_host_function,
    launches,
)
from ttcodegen.dialects.ttmetal.programs import (
    RUN_PROGRAM,
    CircularBuffer,
    Kernel,
    Processor,
    Program,
)
from ttcodegen.dialects.ttnn.placement import TensorPlacement, placement_of
from ttcodegen.emission.description import DeviceManifest
from ttcodegen.emitc.spelling import identifier
from ttcodegen.foundation.diagnostics import source_offset
from ttcodegen.layout.collapse import align_up
from ttcodegen.layout.placements import page_bytes
from ttcodegen.optimizer.overrides.overrides import CallNames
from ttcodegen.systems.description import ChipDescription
from ttcodegen.transforms.rewriting import body_of

if TYPE_CHECKING:
    from ttcodegen.emitc.printer import PrintedLines

_PROCESSORS = {
    Processor.READER: "riscv_1",
    Processor.WRITER: "riscv_0",
    Processor.COMPUTE: "compute",
}
_IS_L1, _IS_DRAM = 0, 2
"""`tensor_accessor::ArgConfig::IsDram` (tt-metal, hostdevcommon arg_config.hpp)."""
_PACKET_HEADER_BYTES = 64
"""Size of the longest header on a line (tt-metal, fabric_edm_packet_header.hpp)."""
_ROW_ALIGNMENT = 32
"""Alignment of rows on the host: `row_alignment` of support/pages.hpp."""

_SHARDED = 1
"""`ArgConfig::Sharded` of the same file."""

Entry = dict[str, Any]


def page_size(placement: TensorPlacement) -> int:
    """Bytes of a page of a tensor's buffer."""
    return max(page_bytes(placement, _ROW_ALIGNMENT), _ROW_ALIGNMENT)


def device_manifest(
    module: ModuleOp, paths: Mapping[tuple[str, str], str], chip: ChipDescription
) -> DeviceManifest:
    """Returns the manifest entries of a module of device programs.

    Args:
        module: host functions and CPU functions.
        paths: file of each kernel, by the names of program and kernel.
        chip: alignments of pages.
    """
    hosts = [function for function in functions_of(module) if is_host_function(function)]
    programs = device_programs(hosts)
    counts = Counter(launch.program.name for launch in launches(hosts))
    by_cpu = cpu_functions(module)
    exchanges = chip_exchanges(hosts, by_cpu)
    return DeviceManifest(
        (*kernel_entries(programs, paths, chip), *exchange_entries(exchanges, chip)),
        tuple(program_entries(programs, counts, share_programs(hosts, paths).by_name)),
        tuple(cpu_function_entries(hosts, called_on_cpu(hosts, by_cpu, exchanges))),
        tuple(link_entries(exchanges)),
    )


def exchanged_over_links(module: ModuleOp) -> dict[Operation, tuple[int, int]]:
    """Returns the calls that become exchanges over links, with their traffic.

    The traffic is the bytes of the busiest link in one direction, and the maximum number of
    hops."""
    hosts = [function for function in functions_of(module) if is_host_function(function)]
    by_host = composed_by_host(module)
    return {
        exchange.call: (_link_bytes(exchange), exchange.sharing.chips - 1)
        for exchange in chip_exchanges(hosts, cpu_functions(module))
        if exchange.sharing.connects and exchange.call not in by_host
    }


def _link_bytes(exchange: ChipExchange) -> int:
    pages = exchange.sharing.pages_over_busiest_link(declared_mesh(exchange.call))
    return pages * page_size(placement_of(exchange.source))


def link_entries(exchanges: Iterable[ChipExchange]) -> Iterator[Entry]:
    """Yields the exchanges between devices, with their mesh axis and bytes of the busiest link."""
    for number, exchange in enumerate(exchanges):
        yield {
            "name": f"exchange_{number}",
            "axis": exchange.sharing.axis,
            "link_bytes": _link_bytes(exchange),
        }


def exchange_entries(exchanges: Iterable[ChipExchange], chip: ChipDescription) -> Iterator[Entry]:
    """Yields the kernels of exchanges, as `support/fabric/exchange.hpp` creates them."""
    for number, exchange in enumerate(exchanges):
        placements = [placement_of(exchange.source), placement_of(exchange.target)]
        size, sharing = page_size(placements[0]), exchange.sharing
        yield {
            "file": f"kernels/{EXCHANGE_KERNEL}",
            "processor": _PROCESSORS[Processor.WRITER],
            "name": "exchange_pages",
            "program": f"exchange_{number}",
            "cores": [[0, 0], [0, 0]],
            "compile_args": [value for each in placements for value in _accessor(each, chip)],
            "named_compile_args": {
                "cb_page": 0,
                "cb_header": 1,
                "page_size": size,
                "pages": sharing.pages,
                "source_run": sharing.source_run,
                "target_run": sharing.target_run,
                "divides": int(sharing.divides),
                "joins": int(sharing.joins),
                "connects": int(sharing.connects),
                "chips": sharing.chips,
            },
            "runtime_args": [
                "source_address",
                "target_address",
                "ready_semaphore",
                "arrived_semaphore",
                "place",
                "takers",
                "givers",
            ],
            "circular_buffers": [
                {"index": 0, "data_format": "UInt32", "page_size": size, "num_pages": 1},
                {
                    "index": 1,
                    "data_format": "UInt32",
                    "page_size": _PACKET_HEADER_BYTES,
                    "num_pages": 1,
                },
            ],
        }


def _accessor(placement: TensorPlacement, chip: ChipDescription) -> list[int]:
    """Compile-time arguments of a tensor's accessor."""
    if placement.buffer_type == "dram":
        memory, alignment = _IS_DRAM, chip.noc_dram_address_align_bytes
    else:
        memory, alignment = _IS_L1, chip.noc_l1_address_align_bytes
    sharded = _shards(placement)
    flags = memory | _SHARDED if sharded else memory
    return [flags, align_up(page_size(placement), alignment), *sharded]


def kernel_entries(
    programs: Iterable[DeviceProgram], paths: Mapping[tuple[str, str], str], chip: ChipDescription
) -> tuple[Entry, ...]:
    """Returns the kernels with their compile options, as the kernel check reads them.

    The keys are those of `CreateKernel`'s arguments.

    Args:
        programs: the programs with their kernels.
        paths: file of each kernel, by the names of program and kernel.
        chip: alignments of pages.
    """
    return tuple(
        _kernel(kernel, program, paths[program.program.name, kernel.name], chip)
        for program in programs
        for kernel in program.program.kernels
    )


def _shards(placement: TensorPlacement) -> list[int]:
    """Shard description of a tensor's accessor; empty if it has no shards.

    Contains the rank, the number of cores, shapes in pages, and the logical coordinates of the
    cores, two per word; on a card these are other coordinates."""
    if placement.shards is None:
        return []
    height, width = placement.collapsed_shape()
    side = TILE_SIDE if placement.layout is Layout.TILE else 1
    rows, columns = placement.shards.shape
    pages = [height, width, rows // side, columns // side]
    if placement.layout is Layout.ROW_MAJOR:
        # A page is a row.
        pages = [height, 1, rows, 1]
    cores = [
        x << 8 | y
        for each in placement.shards.core_ranges
        for y in range(each.first_row, each.last_row + 1)
        for x in range(each.first_column, each.last_column + 1)
    ]
    pairs = zip_longest(cores[::2], cores[1::2], fillvalue=0)
    return [2, len(cores), *pages, *(first | second << 16 for first, second in pairs)]


def _kernel(
    kernel: Kernel, device_program: DeviceProgram, path: str, chip: ChipDescription
) -> Entry:
    program = device_program.program
    named = {constant.name: program.value(constant.value) for constant in kernel.constants}
    named |= {f"{name}_semaphore": program.semaphores.index(name) for name in kernel.semaphores}
    compile_args = [
        value
        for operand in kernel.accessors
        for value in _accessor(device_program.placements[operand], chip)
    ]
    entry: Entry = {
        "file": path,
        "processor": _PROCESSORS[kernel.processor],
        "name": kernel.name,
        "program": program.name,
        "cores": _cores(program.cores_of(kernel)),
        "compile_args": compile_args,
        "named_compile_args": named,
        "runtime_args": [argument.name for argument in kernel.arguments],
        "circular_buffers": [_circular_buffer(buffer, program) for buffer in program.used_buffers],
    }
    if kernel.processor is Processor.COMPUTE:
        entry["math_fidelity"] = program.compute.fidelity.cpp
        entry["fp32_dest_acc_en"] = program.compute.fp32_destination
        if program.compute.approximate:
            entry["math_approx_mode"] = True
    return entry


def _circular_buffer(buffer: CircularBuffer, program: Program) -> Entry:
    entry: Entry = {
        "index": buffer.index,
        "data_format": TILE_FORMATS[buffer.data_type.mlir].cpp,
        "page_size": buffer.page_size,
        "num_pages": program.value(buffer.pages),
    }
    if buffer.index in program.compute.unpack_to_fp32:
        entry["unpack_to_dest_fp32"] = True
    return entry


def _cores(cores: CoreRange) -> list[list[int]]:
    """First and last core."""
    return [[cores.first_column, cores.first_row], [cores.last_column, cores.last_row]]


def program_entries(
    programs: Iterable[DeviceProgram],
    launches: Mapping[str, int],
    shared: Mapping[str, SharedProgram],
) -> list[Entry]:
    """Returns the programs with their use of cores, L1 and DRAM.

    Args:
        programs: the programs.
        launches: number of launches of each program in a call of all functions.
        shared: shared C++ program of each program, by name.
    """
    return [_program(p.program, launches[p.program.name], shared) for p in programs]


def cpu_function_entries(
    hosts: Sequence[FuncOp], cpu_functions: Iterable[FuncOp]
) -> Iterator[Entry]:
    """Yields the CPU functions, with their ops and number of calls."""
    calls = Counter(callee_of(op) for host in hosts for op in body_of(host).ops)
    for function in cpu_functions:
        name = function.sym_name.data
        ops = [op.name for op in body_of(function).ops if isinstance(op, CatalogueOp)]
        yield {"name": name, "ops": ops, "calls": calls[name]}


def _program(program: Program, launches: int, shared: Mapping[str, SharedProgram]) -> Entry:
    known = shared.get(program.name)
    return {
        "name": program.name,
        "cpp_name": identifier((program if known is None else known.program).name),
        "purpose": program.purpose,
        "launches": launches,
        "cores": _cores(program.core_range),
        "circular_buffers": [
            {
                "name": buffer.name,
                **_circular_buffer(buffer, program),
                **({"operand": buffer.operand} if buffer.is_alias else {}),
            }
            for buffer in program.used_buffers
        ],
        "settings": {setting.name: setting.value for setting in program.tuning.settings},
        "l1_bytes": program.l1_bytes,
        "costs": asdict(program.costs),
    }


class LoweredOp(NamedTuple):
    """Identifies an op of a lowered module without reference to the module."""

    function: str
    name: str
    """Name among the ops of the function."""
    offset: int | None
    """Source location of the op that it was lowered from."""


class OpLines(NamedTuple):
    """Lines of a file that belong to an op, counted from 1, both ends included."""

    op: LoweredOp
    path: str
    first: int
    last: int


@dataclass(frozen=True)
class _Launched:
    """A launched device program."""

    launch: LoweredOp
    kernels: Sequence[str]
    """Files of its kernels."""
    computed: Sequence[LoweredOp]
    """Ops that define its meaning."""


@dataclass
class LoweredOps:
    """Ops of the functions of a module, collected before its conversion to C++.

    Device programs are identified by the ops that launch them.

    Args:
        module: the lowered module.
        kernel_paths: file of each kernel, by the names of program and kernel.
    """

    module: ModuleOp
    kernel_paths: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    _ops: dict[Operation, LoweredOp] = field(default_factory=lambda: {})
    _launched: list[_Launched] = field(default_factory=list[_Launched])

    def __post_init__(self) -> None:
        launches: list[Operation] = []
        computed: dict[str, list[LoweredOp]] = {}
        for function in self.module.walk():
            if isinstance(function, FuncOp) and function.body.blocks:
                computed[function.sym_name.data] = self._add(function, launches)
        if not launches:
            return
        # Imported on demand: it takes longer than the lowering of a small model.
        from ttcodegen.dialects.ttmetal.device_module import launch_of

        for op in launches:
            found = launch_of(op)
            program = found.program
            kernels = [self.kernel_paths[program.name, kernel.name] for kernel in program.kernels]
            self._launched.append(
                _Launched(
                    self._ops[op], list(dict.fromkeys(kernels)), computed.get(found.meaning, [])
                )
            )

    def _add(self, function: FuncOp, launches: list[Operation]) -> list[LoweredOp]:
        names = CallNames(function)
        added: list[LoweredOp] = []
        taken = set(names)
        launched = 0
        for op in function.body.block.ops:
            if op in names:
                name = names[op]
            elif operation_name(op) == RUN_PROGRAM:
                launched += 1
                launches.append(op)
                name = f"{RUN_PROGRAM.rpartition('.')[2]}:{launched}"
            elif op.results and (hint := op.results[0].name_hint) is not None and hint not in taken:
                # A buffer that a program writes.
                name = hint
                taken.add(hint)
            else:
                continue
            self._ops[op] = LoweredOp(names.function, name, source_offset(op))
            added.append(self._ops[op])
        return added

    def lines(
        self, files: Mapping[str, str], printed: Mapping[str, Sequence[PrintedLines]]
    ) -> tuple[OpLines, ...]:
        """Returns the lines of the ops.

        A whole kernel belongs to the launches of its program, and both belong to the ops that the
        program computes.

        Args:
            files: the text of each file that was printed.
            printed: lines of each file with their ops.
        """
        found = list(self._printed(printed))
        launching: dict[LoweredOp, list[OpLines]] = {}
        for each in found if self._launched else ():
            launching.setdefault(each.op, []).append(each)
        for program in self._launched:
            whole = [
                OpLines(program.launch, path, 1, files[path].count("\n"))
                for path in program.kernels
            ]
            found += whole
            for op in program.computed:
                found += [
                    each._replace(op=op) for each in (*launching.get(program.launch, ()), *whole)
                ]
        return tuple(found)

    def _printed(self, printed: Mapping[str, Sequence[PrintedLines]]) -> Iterator[OpLines]:
        for path, lines in printed.items():
            for each in lines:
                op = self._ops.get(each.origin)
                if op is not None:
                    yield OpLines(op, path, each.first + 1, each.end)
