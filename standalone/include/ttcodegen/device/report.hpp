/// What the emulated device did for a program. Ours, not tt-metal's: with the real library there is
/// no such header, so programs include it only in tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ttcodegen/device/processor.hpp"

namespace tt::tt_metal {
class Program;
}

namespace ttcodegen::device {

/// What one core did for a kernel.
struct CoreReport {
    std::uint32_t noc_x = 0;
    std::uint32_t noc_y = 0;
    Counters counters;
};

struct KernelReport {
    std::string kernel;     ///< As given to CreateKernel.
    std::string processor;  ///< BRISC, NCRISC or TRISC.
    std::uint32_t cores = 0;
    Counters counters;  ///< Summed over its cores.
    std::vector<CoreReport> places;
};

struct ProgramReport {
    std::uint64_t runs = 0;
    double compile_seconds = 0;  ///< Of the last run: kernels that were not in the cache.
    double run_seconds = 0;      ///< Of the last run.
    Counters total;              ///< Of the last run.
    std::vector<KernelReport> kernels;
};

/// The report of the program's last run; also written for all programs of the process to the file
/// that the environment variable TTCODEGEN_DEVICE_REPORT names, as JSON.
const ProgramReport& program_report(const tt::tt_metal::Program& program);

}  // namespace ttcodegen::device
