"""The check of initialisations in kernels, with headers like those of a release."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.initialisation_check import InitialisationCheck
from scripts.initialisation_table import API, InitialisationTable
from tests.kernel_check.seeded_faults import seeds

HEADERS = {
    "common.h": """
ALWI void tile_regs_acquire() { MATH((llk_math_wait_for_dest_available())); }
""",
    "tile_move_copy.h": """
ALWI void copy_tile_init(uint32_t cb) {
    UNPACK((llk_unpack_A_init<BroadcastType::NONE>(false, false, cb)));
    MATH((llk_math_eltwise_unary_datacopy_init<DataCopyType::A2D, BroadcastType::NONE>(cb)));
}
ALWI void copy_tile(uint32_t cb, uint32_t tile, uint32_t dst) {
    UNPACK((llk_unpack_A<BroadcastType::NONE>(cb, tile)));
    MATH((llk_math_eltwise_unary_datacopy<DataCopyType::A2D, BroadcastType::NONE>(dst, cb)));
}
ALWI void pack_tile(uint32_t dst, uint32_t cb) { PACK((llk_pack<false>(dst, cb))); }
""",
    "eltwise_unary/eltwise_unary.h": """
ALWI void unary_op_init_common(uint32_t icb, uint32_t ocb) {
    UNPACK((llk_unpack_hw_configure<DST_ACCUM_MODE>(icb)));
    UNPACK((llk_unpack_A_init<BroadcastType::NONE>(false, false, icb)));
    PACK((llk_pack_init(ocb)));
    PACK((llk_pack_dest_init<DST_ACCUM_MODE, false>()));
    MATH((llk_math_eltwise_unary_datacopy_init<DataCopyType::A2D, BroadcastType::NONE>(icb)));
    MATH((llk_math_pack_sync_init<DST_ACCUM_MODE>()));
}
""",
    "eltwise_unary/exp.h": """
template <bool approx = false>
ALWI void exp_tile_init() { MATH((llk_math_eltwise_unary_sfpu_exp_init<approx>())); }
template <bool approx = false>
ALWI void exp_tile(uint32_t dst) { MATH((llk_math_eltwise_unary_sfpu_exp<approx>(dst))); }
""",
    "transpose_wh.h": """
ALWI void transpose_wh_init_short(uint32_t cb) {
    UNPACK((llk_unpack_A_init<BroadcastType::NONE>(true, true, cb)));
    MATH((llk_math_eltwise_unary_datacopy_init<DataCopyType::A2D, BroadcastType::NONE>(cb)));
}
""",
    "matmul.h": """
ALWI void mm_init(uint32_t a, uint32_t b, uint32_t out) {
    MATH((llk_math_matmul_init<MATH_FIDELITY>(a, b)));
    UNPACK((llk_unpack_AB_matmul_init(a, b)));
    MATH((llk_math_pack_sync_init<DST_ACCUM_MODE>()));
    PACK((llk_pack_dest_init<DST_ACCUM_MODE, false>()));
}
ALWI void mm_init_short(uint32_t a, uint32_t b) {
    MATH((llk_math_matmul_init<MATH_FIDELITY>(a, b)));
    UNPACK((llk_unpack_AB_matmul_init(a, b)));
}
ALWI void matmul_tiles(uint32_t a, uint32_t b, uint32_t i, uint32_t j, uint32_t dst) {
    UNPACK((llk_unpack_AB_matmul(a, b, i, j)));
    MATH((llk_math_matmul<MATH_FIDELITY>(dst)));
}
""",
    "reduce.h": """
template <PoolType type, ReduceDim dim>
ALWI void reduce_init(uint32_t a, uint32_t b, uint32_t c) {
    UNPACK((llk_unpack_AB_reduce_init<type, dim>(a, b)));
    MATH((llk_math_reduce_init<type, dim>()));
    PACK((llk_pack_reduce_mask_config<false, dim>()));
}
ALWI void reduce_uninit() { PACK((llk_pack_reduce_mask_clear())); }
template <PoolType type, ReduceDim dim>
ALWI void reduce_tile(uint32_t a, uint32_t b, uint32_t i, uint32_t j, uint32_t dst) {
    MATH((llk_math_reduce<type, dim>(dst)));
    UNPACK((llk_unpack_AB_reduce<type, dim>(a, b, i, j)));
}
""",
    "transpose.h": """
ALWI void transpose_init(uint32_t cb) {
    UNPACK((llk_unpack_A_init<BroadcastType::NONE>(true, true, cb)));
    MATH((llk_math_eltwise_unary_datacopy_init<DataCopyType::A2D, BroadcastType::NONE>(cb)));
}
ALWI void transpose_tile(uint32_t cb, uint32_t tile, uint32_t dst) {
    UNPACK((llk_unpack_A<BroadcastType::NONE>(cb, tile)));
    MATH((llk_math_eltwise_unary_datacopy<DataCopyType::A2D, BroadcastType::NONE>(dst, cb)));
}
""",
    "experimental/2_0/reduce.h": """
template <PoolType type, ReduceDim dim, typename A, typename B>
ALWI void reduce_tile(const A& a, const B& b, uint32_t i, uint32_t j, uint32_t dst) {
    UNPACK((llk_unpack_AB_reduce_impl<type, dim>(a, b, i, j)));
}
ALWI void sum_tile(uint32_t dst) { MATH((llk_math_sum(dst))); }
""",
    "tilize.h": """
#ifndef ARCH_QUASAR
ALWI void tilize_init(uint32_t a, uint32_t block, uint32_t b) {
    UNPACK((llk_unpack_tilize_init(a, block)));
    MATH((llk_math_eltwise_unary_datacopy_init<DataCopyType::A2D, BroadcastType::NONE>(a)));
}
ALWI void tilize_uninit(uint32_t a, uint32_t b) { UNPACK((llk_unpack_tilize_uninit(a))); }
#endif
#ifdef ARCH_QUASAR
ALWI void copy_tile_init(uint32_t cb) { UNPACK((llk_unpack_other_init(cb))); }
#endif
""",
}
"""Headers of a release: functions by the low-level kernels that they call."""

KERNEL = """
void prepare(uint32_t cb) {
    copy_tile_init(cb);
}

void kernel_main() {
    unary_op_init_common(0, 16);
    for (uint32_t tile = 0; tile < 8; ++tile) {
        tile_regs_acquire();
        prepare(0);
        copy_tile(0, 0, 0);
        exp_tile_init();
        exp_tile(0);
        tile_regs_commit();
        tile_regs_wait();
        pack_tile(0, 16);
        tile_regs_release();

        reduce_init<PoolType::SUM, ReduceDim::REDUCE_ROW>(0, 1, 16);
        tile_regs_acquire();
        reduce_tile<PoolType::SUM, ReduceDim::REDUCE_ROW>(0, 1, 0, 0, 0);
        tile_regs_commit();
        tile_regs_wait();
        pack_tile(0, 16);
        reduce_uninit();
        tile_regs_release();

        tile_regs_acquire();
        mm_init_short(0, 1);
        matmul_tiles(0, 1, 0, 0, 0);
        tile_regs_commit();
        tile_regs_wait();
        pack_tile(0, 16);
        tile_regs_release();
    }
}
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> InitialisationTable:
    device = tmp_path_factory.mktemp("device")
    for name, text in HEADERS.items():
        path = device / API / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return InitialisationTable.read(device)


def messages(table: InitialisationTable, folder: Path, text: str) -> list[tuple[int, str]]:
    """The lines and messages of the faults of a kernel."""
    path = folder / "kernel.cpp"
    path.write_text(text)
    found = InitialisationCheck(table).faults([path])
    assert {fault.file for fault in found} <= {path}
    return [(fault.line, fault.message) for fault in found]


def test_full_initialisations_are_those_that_give_the_registers_back(
    table: InitialisationTable,
) -> None:
    assert table.full == {
        "mm_init": "matmul.h",
        "unary_op_init_common": "eltwise_unary/eltwise_unary.h",
    }
    assert table.undone == {("unpack", "tilize"): "tilize_uninit"}
    assert table.vector_initialisations("exp_tile") == {"exp_tile_init"}


def test_overloads_of_experimental_headers_are_of_other_operands(
    table: InitialisationTable,
) -> None:
    needed = [(step.engine, step.core) for step in table.steps("reduce_tile")]
    assert sorted(needed) == [("math", "reduce"), ("unpack", "AB_reduce")]
    assert [step.core for step in table.steps("sum_tile")] == ["sum"]


def test_a_copy_is_no_initialisation_of_a_transpose(
    table: InitialisationTable, tmp_path: Path
) -> None:
    kernel = KERNEL.replace("copy_tile(0, 0, 0)", "transpose_tile(0, 0, 0)")
    [(line, message)] = messages(table, tmp_path, kernel)
    assert line == 11
    assert "unpacking is set up by copy_tile_init in line 3, not for this" in message
    assert (
        messages(table, tmp_path, kernel.replace("copy_tile_init(cb)", "transpose_init(cb)")) == []
    )


def test_a_kernel_that_is_right_has_no_fault(table: InitialisationTable, tmp_path: Path) -> None:
    assert messages(table, tmp_path, KERNEL) == []


@pytest.mark.parametrize(
    ("right", "wrong", "line", "message"),
    [
        ("prepare(0);", "unary_op_init_common(0, 16);", 10, "is a full initialisation"),
        (
            "pack_tile(0, 16);\n        tile_regs_release();\n\n        reduce_init",
            "pack_tile(0, 16);\n        unary_op_init_common(0, 16);\n"
            "        tile_regs_release();\n\n        reduce_init",
            17,
            "are in use since line 14",
        ),
        ("exp_tile_init();\n", "\n", 13, "exp_tile without exp_tile_init before it"),
        ("mm_init_short(0, 1);", "copy_tile_init(0);", 30, "its own initialisation is missing"),
        ("mm_init_short(0, 1);\n", "\n", 30, "is set up by reduce_init in line 19"),
        ("reduce_uninit();\n", "\n", 29, "reduce_uninit is missing"),
        (
            "reduce_tile<PoolType::SUM, ReduceDim::REDUCE_ROW>",
            "reduce_tile<PoolType::SUM, ReduceDim::REDUCE_COL>",
            21,
            "is set up by reduce_init in line 19, not for this",
        ),
        (
            "tile_regs_acquire();\n        mm_init_short",
            "tilize_init(0, 1, 16);\n        mm_init_short",
            29,
            "tilize_uninit is missing",
        ),
    ],
)
def test_a_fault_is_found_at_its_line(
    table: InitialisationTable, tmp_path: Path, right: str, wrong: str, line: int, message: str
) -> None:
    assert KERNEL.count(right) == 1
    found = messages(table, tmp_path, KERNEL.replace(right, wrong))
    assert any(at == line and message in text for at, text in found), found


def test_conditions_on_macros_and_branches_are_followed(
    table: InitialisationTable, tmp_path: Path
) -> None:
    text = """
void kernel_main() {
    unary_op_init_common(0, 16);
    tile_regs_acquire();
#ifdef FUSED
    OTHER_INIT
#endif
    if (get_arg_val<uint32_t>(0) > 1) {
        mm_init_short(0, 1);
    } else {
        copy_tile_init(0);
    }
    matmul_tiles(0, 1, 0, 0, 0);
    exp_tile(0);
}
"""
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    check = InitialisationCheck(table)
    # One way is right, so it is none of the kernel's faults; the vector engine was set up nowhere.
    assert [fault.line for fault in check.faults([path])] == [14]
    assert check.faults([path], {"FUSED": "1", "OTHER_INIT": "exp_tile_init();"}) == []


def test_seeded_faults_are_found(table: InitialisationTable, tmp_path: Path) -> None:
    found = {
        (seed.kind, seed.line): bool(messages(table, tmp_path, seed.text)) for seed in seeds(KERNEL)
    }
    assert {kind for kind, _ in found} >= {
        "full before release",
        "initialisation of another",
        "initialisation left out",
        "uninit left out",
        "vector initialisation left out",
    }
    assert [seed for seed, is_found in found.items() if not is_found] == []
