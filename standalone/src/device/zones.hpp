/// Zones of the profiler: parts of kernels that have names.
#pragma once

#include <cstdint>
#include <vector>

#include "ttcodegen/device/processor.hpp"
#include "ttcodegen/device/report.hpp"

namespace ttcodegen::device {

/// Zones that a processor keeps for each run of a program, as on the card: 250 markers, two for
/// each (tt-metal 0.70.1, hostdevcommon/profiler_common.h, PROFILER_L1_OPTIONAL_MARKER_COUNT).
inline constexpr std::size_t kMaxZones = 125;

/// Notes the zones of one processor.
class ZoneRecorder {
  public:
    void begin(const char* name, std::uint32_t line, const Counters& counters);
    void end(const Counters& counters);

    /// In the order in which they began.
    const std::vector<ZoneReport>& zones() const { return zones_; }
    /// How many zones there was no room for.
    std::uint64_t lost() const { return lost_; }

  private:
    std::vector<ZoneReport> zones_;
    std::vector<std::size_t> open_;  ///< Indices of zones, innermost last; kMaxZones if it is lost.
    std::uint64_t lost_ = 0;
};

}  // namespace ttcodegen::device
