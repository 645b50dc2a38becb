#pragma once

// The ethernet links between the devices of a mesh: lines along its axes, closed to rings if the
// fabric config has them. Data moves at once; the traffic of each link is counted.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tt-metalium/experimental/fabric/fabric_edm_types.hpp"
#include "tt-metalium/experimental/fabric/fabric_types.hpp"

namespace ttcodegen::cpu {

class Fabric {
  public:
    /// Links devices according to the fabric config at the time that the mesh is opened.
    Fabric(std::size_t rows, std::size_t columns);

    /// Returns whether there are links: without a fabric config collectives fail.
    bool is_enabled() const { return config_ != tt::tt_fabric::FabricConfig::DISABLED; }
    /// Returns whether the last device along an axis is linked to the first one.
    bool is_ring(std::size_t axis) const;

    /// The number of devices along an axis.
    std::size_t size(std::size_t axis) const { return axis == 1 ? columns_ : rows_; }
    /// The devices along an axis, for each of its lines, in row-major order.
    std::vector<std::vector<std::size_t>> lines(std::size_t axis) const;

    /// The line of a device along an axis.
    std::vector<std::size_t> line_of(std::size_t device, std::size_t axis) const {
        return lines(axis)[axis == 1 ? device / columns_ : device % columns_];
    }
    /// The position of a device on that line.
    std::size_t place_of(std::size_t device, std::size_t axis) const {
        return axis == 1 ? device % columns_ : device / columns_;
    }

    /// Returns whether data along an axis is sent in both directions of a ring: if it has more than
    /// two devices, unless a line is requested.
    /// @throws std::runtime_error if a ring is requested whose ends have no link.
    bool goes_round(std::size_t axis, std::optional<tt::tt_fabric::Topology> asked) const;

    /// Each device of each line sends `bytes` to all others of the line.
    void count_gather(std::size_t axis, std::uint64_t bytes, bool round);
    /// Each device of each line gets from all others its share of the sum; a share has `bytes`.
    void count_reduce_scatter(std::size_t axis, std::uint64_t bytes, bool round);
    /// One device of a line sends `bytes` to another one; `round` allows the shorter way of a ring.
    void count_sent(std::size_t axis, std::size_t sender, std::size_t receiver, std::uint64_t bytes,
                    bool round);

    /// Sends a packet over `hops` links of a line, the first to the device `next`, and counts it.
    /// @return The destination; nothing if `next` is no neighbour, or the line is shorter.
    std::optional<std::size_t> send(std::size_t device, std::size_t next, std::size_t hops,
                                    std::uint64_t bytes);

    /// Writes the bytes of each link as JSON to the file that TTCODEGEN_FABRIC_REPORT names, if it
    /// is set.
    void report() const;

  private:
    /// Adds the traffic of a line's links in both directions, `bytes` per piece of data: on a link
    /// in the middle, the data of each device on one side or, if `sums`, one sum for each device on
    /// the other.
    void count(std::size_t axis, std::uint64_t bytes, bool sums, bool round);

    std::size_t rows_;
    std::size_t columns_;
    tt::tt_fabric::FabricConfig config_;
    /// Bytes that a device sent to the next and to the previous device, for each axis.
    std::vector<std::uint64_t> forward_[2];
    std::vector<std::uint64_t> backward_[2];
};

}  // namespace ttcodegen::cpu
