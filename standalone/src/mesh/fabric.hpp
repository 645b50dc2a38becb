#pragma once

// The ethernet links between the devices of a mesh: lines along its axes, closed to rings where the
// fabric says so. Data moves at once; what travels over each link is counted.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tt-metalium/experimental/fabric/fabric_edm_types.hpp"
#include "tt-metalium/experimental/fabric/fabric_types.hpp"

namespace ttcodegen::cpu {

class Fabric {
  public:
    /// Linked as the fabric is configured when the mesh is opened.
    Fabric(std::size_t rows, std::size_t columns);

    /// Whether there are any links: without a configuration of the fabric collectives fail.
    bool is_enabled() const { return config_ != tt::tt_fabric::FabricConfig::DISABLED; }
    /// Whether the last device along an axis is linked to the first one.
    bool is_ring(std::size_t axis) const;

    /// How many devices there are along an axis.
    std::size_t size(std::size_t axis) const { return axis == 1 ? columns_ : rows_; }
    /// The devices along an axis, for each of its lines, row by row.
    std::vector<std::vector<std::size_t>> lines(std::size_t axis) const;

    /// The devices of the line along an axis that a device is on.
    std::vector<std::size_t> line_of(std::size_t device, std::size_t axis) const {
        return lines(axis)[axis == 1 ? device / columns_ : device % columns_];
    }
    /// Where on that line it is.
    std::size_t place_of(std::size_t device, std::size_t axis) const {
        return axis == 1 ? device % columns_ : device / columns_;
    }

    /// Whether what goes along an axis goes both ways round a ring: where there is one of more than
    /// two devices, unless a line is requested.
    /// @throws std::runtime_error if a ring is requested whose ends have no link.
    bool goes_round(std::size_t axis, std::optional<tt::tt_fabric::Topology> asked) const;

    /// Each device of each line sends `bytes` to all others of the line.
    void count_gather(std::size_t axis, std::uint64_t bytes, bool round);
    /// Each device of each line gets from all others its share of the sum; a share has `bytes`.
    void count_reduce_scatter(std::size_t axis, std::uint64_t bytes, bool round);
    /// One device of a line sends `bytes` to another one: the shorter way where that goes round.
    void count_sent(std::size_t axis, std::size_t sender, std::size_t receiver, std::uint64_t bytes,
                    bool round);

    /// Sends a packet over `hops` links of a line, the first to the device `next`, and counts it.
    /// @return Where it arrives; nothing if `next` is no neighbour, or the line is shorter.
    std::optional<std::size_t> send(std::size_t device, std::size_t next, std::size_t hops,
                                    std::uint64_t bytes);

    /// Writes the bytes of each link as JSON to the file that TTCODEGEN_FABRIC_REPORT names, if it
    /// is set.
    void report() const;

  private:
    /// Adds `bytes` for each piece of data that goes over the links along an axis, both ways: over
    /// one in the middle of a line that of each device on the one side, or, as `sums`, one for each
    /// device on the other.
    void count(std::size_t axis, std::uint64_t bytes, bool sums, bool round);

    std::size_t rows_;
    std::size_t columns_;
    tt::tt_fabric::FabricConfig config_;
    /// Bytes that a device sent to its next and to its previous one, for each axis.
    std::vector<std::uint64_t> forward_[2];
    std::vector<std::uint64_t> backward_[2];
};

}  // namespace ttcodegen::cpu
