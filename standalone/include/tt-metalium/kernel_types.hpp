#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tt-metalium/base_types.hpp"
#include "tt-metalium/hal_types.hpp"
#include "ttcodegen/release.hpp"
#include "umd/device/types/arch.hpp"

namespace tt::tt_metal {

/// The processor that a data movement kernel runs on; Tensix cores have the first two.
enum class DataMovementProcessor {
    RISCV_0 = 0,
    RISCV_1 = 1,
    RISCV_2 = 2,
    RISCV_3 = 3,
    RISCV_4 = 4,
    RISCV_5 = 5,
    RISCV_6 = 6,
    RISCV_7 = 7,
};

enum NOC : std::uint8_t {
    RISCV_0_default = 0,
    RISCV_1_default = 1,
    NOC_0 = 0,
    NOC_1 = 1,
};

enum NOC_MODE : std::uint8_t {
    DM_DEDICATED_NOC = 0,
    DM_DYNAMIC_NOC = 1,
};

constexpr std::uint32_t max_runtime_args = 341;

using KernelHandle = std::uint32_t;

enum class KernelBuildOptLevel : std::uint8_t { O1, O2, O3, O0, Os, Ofast, Oz };

struct DataMovementConfig {
    DataMovementProcessor processor = DataMovementProcessor::RISCV_0;
    NOC noc = NOC::RISCV_0_default;
    NOC_MODE noc_mode = NOC_MODE::DM_DEDICATED_NOC;
    std::vector<std::uint32_t> compile_args;
    std::map<std::string, std::string> defines;
    std::unordered_map<std::string, std::uint32_t> named_compile_args;
    KernelBuildOptLevel opt_level = KernelBuildOptLevel::O2;
};

/// RISCV_1 and the NoC preferred for reads from DRAM.
struct ReaderDataMovementConfig : public DataMovementConfig {
    ReaderDataMovementConfig(
        std::vector<std::uint32_t> compile_args = {},
        std::map<std::string, std::string> defines = {},
        std::unordered_map<std::string, std::uint32_t> named_compile_args = {},
        KernelBuildOptLevel opt_level = KernelBuildOptLevel::O2 TTCODEGEN_ADDED_8101(
            , std::vector<std::filesystem::path> include_paths = {}));
};

/// RISCV_0 and the NoC preferred for writes to DRAM.
struct WriterDataMovementConfig : public DataMovementConfig {
    WriterDataMovementConfig(
        std::vector<std::uint32_t> compile_args = {},
        std::map<std::string, std::string> defines = {},
        std::unordered_map<std::string, std::uint32_t> named_compile_args = {},
        KernelBuildOptLevel opt_level = KernelBuildOptLevel::O2 TTCODEGEN_ADDED_8101(
            , std::vector<std::filesystem::path> include_paths = {}));
};

struct ComputeConfig {
    MathFidelity math_fidelity = MathFidelity::HiFi4;
    bool fp32_dest_acc_en = false;
    bool dst_full_sync_en = false;
    /// Indexed by circular buffer; empty means Default for all.
    std::vector<UnpackToDestMode> unpack_to_dest_mode;
    bool bfp8_pack_precise = false;
    bool math_approx_mode = false;
    std::vector<std::uint32_t> compile_args;
    std::map<std::string, std::string> defines;
    std::unordered_map<std::string, std::uint32_t> named_compile_args;
    KernelBuildOptLevel opt_level = KernelBuildOptLevel::O3;
};

namespace detail {

inline NOC preferred_noc_for_dram_read(ARCH /*arch*/) { return NOC::NOC_0; }
inline NOC preferred_noc_for_dram_write(ARCH /*arch*/) { return NOC::NOC_1; }

}  // namespace detail

}  // namespace tt::tt_metal
