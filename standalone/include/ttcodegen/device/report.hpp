/// Report of the emulated device for a program. Specific to this backend: tt-metal has no such
/// header, so programs include it only in tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ttcodegen/device/processor.hpp"

namespace tt::tt_metal {
class Program;
}

namespace ttcodegen::device {

/// A zone of a kernel, named by DeviceZoneScopedN.
struct ZoneReport {
    std::string name;
    std::uint32_t line = 0;  ///< Of the kernel's source.
    Counters begin;          ///< What the processor had done when the zone began.
    Counters end;
};

/// Activity of one core for a kernel.
struct CoreReport {
    std::uint32_t noc_x = 0;
    std::uint32_t noc_y = 0;
    Counters counters;
    std::vector<ZoneReport> zones;  ///< In the order in which they began.
    std::uint64_t lost_zones = 0;   ///< Zones that there was no room for.
};

struct KernelReport {
    std::string kernel;     ///< As given to CreateKernel.
    std::string processor;  ///< BRISC, NCRISC or TRISC.
    std::string fidelity;   ///< Of the matrix engine: lofi, hifi2, hifi3, hifi4; empty elsewhere.
    std::uint32_t cores = 0;
    Counters counters;  ///< Summed over its cores.
    std::vector<CoreReport> places;
};

struct ProgramReport {
    std::uint64_t runs = 0;
    std::size_t chip = 0;        ///< Of the last run, on a mesh.
    double compile_seconds = 0;  ///< Of the last run: kernels that were not in the cache.
    double run_seconds = 0;      ///< Of the last run.
    Counters total;              ///< Of the last run.
    std::vector<KernelReport> kernels;
};

/// The report of the program's last run; also written as JSON, for all programs of the process, to
/// the file that the environment variable TTCODEGEN_DEVICE_REPORT names.
const ProgramReport& program_report(const tt::tt_metal::Program& program);

}  // namespace ttcodegen::device
