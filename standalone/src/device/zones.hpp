/// Zones of the profiler: named parts of kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "ttcodegen/device/processor.hpp"
#include "ttcodegen/device/report.hpp"

namespace ttcodegen::device {

/// Zones that are kept for each processor and run, as on hardware: 250 markers, two per zone
/// (tt-metal 0.70.1, hostdevcommon/profiler_common.h, PROFILER_L1_OPTIONAL_MARKER_COUNT).
inline constexpr std::size_t kMaxZones = 125;

/// Records the zones of one processor.
class ZoneRecorder {
  public:
    void begin(const char* name, std::uint32_t line, const Counters& counters);
    void end(const Counters& counters);

    /// In the order in which they began.
    const std::vector<ZoneReport>& zones() const { return zones_; }
    /// The number of zones that exceeded the limit.
    std::uint64_t lost() const { return lost_; }

  private:
    std::vector<ZoneReport> zones_;
    std::vector<std::size_t> open_;  ///< Indices of zones, innermost last; kMaxZones if it is lost.
    std::uint64_t lost_ = 0;
};

}  // namespace ttcodegen::device
