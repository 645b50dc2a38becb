#include "mesh/fabric.hpp"

#include <atomic>
#include <cstdlib>
#include <fstream>

#include "mesh/ranks.hpp"
#include "tt-metalium/experimental/fabric/fabric.hpp"
#include "tt_stl/assert.hpp"

namespace {

std::atomic<tt::tt_fabric::FabricConfig> configured = tt::tt_fabric::FabricConfig::DISABLED;

}  // namespace

namespace tt::tt_fabric {

void SetFabricConfig(FabricConfig fabric_config, FabricReliabilityMode /*reliability_mode*/,
                     std::optional<std::uint8_t> /*num_routing_planes*/,
                     FabricTensixConfig /*fabric_tensix_config*/, FabricUDMMode /*fabric_udm_mode*/,
                     FabricManagerMode /*fabric_manager*/, FabricRouterConfig /*router_config*/) {
    configured = fabric_config;
}

FabricConfig GetFabricConfig() { return configured; }

}  // namespace tt::tt_fabric

namespace ttcodegen::cpu {

using tt::tt_fabric::FabricConfig;
using tt::tt_fabric::Topology;

Fabric::Fabric(std::size_t rows, std::size_t columns)
    : rows_(rows), columns_(columns), config_(configured) {
    for (std::size_t axis = 0; axis < 2; ++axis) {
        forward_[axis].resize(rows * columns);
        backward_[axis].resize(rows * columns);
    }
}

bool Fabric::is_ring(std::size_t axis) const {
    switch (config_) {
        case FabricConfig::FABRIC_1D_RING:
        case FabricConfig::FABRIC_2D_TORUS_XY:
            return true;
        case FabricConfig::FABRIC_2D_TORUS_X:
            return axis == 1;
        case FabricConfig::FABRIC_2D_TORUS_Y:
            return axis == 0;
        default:
            return false;
    }
}

std::vector<std::vector<std::size_t>> Fabric::lines(std::size_t axis) const {
    std::vector<std::vector<std::size_t>> found(axis == 1 ? rows_ : columns_);
    for (std::size_t row = 0; row < rows_; ++row) {
        for (std::size_t column = 0; column < columns_; ++column) {
            found[axis == 1 ? row : column].push_back(row * columns_ + column);
        }
    }
    return found;
}

bool Fabric::goes_round(std::size_t axis, std::optional<Topology> asked) const {
    const bool ring = asked == Topology::Ring || asked == Topology::Torus;
    // Of two devices ttnn makes a line, whatever is requested.
    if (size(axis) <= 2 || (asked && !ring)) {
        return false;
    }
    TT_FATAL(!ring || is_ring(axis),
             "A ring of {} devices along axis {} needs a fabric that links the last one to the "
             "first: FABRIC_1D_RING or a torus",
             size(axis), axis);
    return is_ring(axis);
}

void Fabric::count(std::size_t axis, std::uint64_t bytes, bool sums, bool round) {
    const std::size_t length = size(axis);
    for (const auto& line : lines(axis)) {
        for (std::size_t place = 0; place < length; ++place) {
            const std::size_t before = place + 1;
            const std::size_t after = length - before;
            std::uint64_t& forward = forward_[axis][line[place]];
            std::uint64_t& backward = backward_[axis][line[before % length]];
            if (round) {
                // Half of the line is sent in one direction of the ring, half in the other.
                forward += bytes * (length / 2);
                backward += bytes * ((length - 1) / 2);
            } else if (after > 0) {
                // Data of each device on one side, or a sum for each device on the other.
                forward += bytes * (sums ? after : before);
                backward += bytes * (sums ? before : after);
            }
        }
    }
}

void Fabric::count_gather(std::size_t axis, std::uint64_t bytes, bool round) {
    count(axis, bytes, false, round);
}

void Fabric::count_reduce_scatter(std::size_t axis, std::uint64_t bytes, bool round) {
    count(axis, bytes, true, round);
}

void Fabric::count_sent(std::size_t axis, std::size_t sender, std::size_t receiver,
                        std::uint64_t bytes, bool round) {
    const std::vector<std::size_t> line = line_of(sender, axis);
    const std::size_t length = line.size();
    const std::size_t from = place_of(sender, axis);
    const std::size_t to = place_of(receiver, axis);
    const std::size_t ahead = (to + length - from) % length;
    const bool forward = round ? 2 * ahead <= length : from < to;
    const std::size_t hops = forward ? ahead : (from + length - to) % length;
    for (std::size_t hop = 0; hop < hops; ++hop) {
        const std::size_t place = (forward ? from + hop : from + length - hop) % length;
        (forward ? forward_ : backward_)[axis][line[place]] += bytes;
    }
}

std::optional<std::size_t> Fabric::send(std::size_t device, std::size_t next, std::size_t hops,
                                        std::uint64_t bytes) {
    for (std::size_t axis = 0; axis < 2; ++axis) {
        const std::vector<std::size_t> line = line_of(device, axis);
        const std::size_t place = place_of(device, axis);
        const bool forward = place + 1 < line.size() && line[place + 1] == next;
        const bool backward = place > 0 && line[place - 1] == next;
        if (!is_enabled() || (!forward && !backward)) {
            continue;
        }
        if (hops == 0 || hops > (forward ? line.size() - 1 - place : place)) {
            return std::nullopt;
        }
        for (std::size_t hop = 0; hop < hops; ++hop) {
            (forward ? forward_ : backward_)[axis][line[forward ? place + hop : place - hop]] +=
                bytes;
        }
        return line[forward ? place + hops : place - hops];
    }
    return std::nullopt;
}

void Fabric::report() const {
    const char* path = std::getenv("TTCODEGEN_FABRIC_REPORT");
    if (path == nullptr || *path == '\0' || !is_first_rank()) {
        return;
    }
    std::ofstream file(path, std::ios::trunc);
    file << "{\"links\": [";
    const char* separator = "";
    for (std::size_t axis = 0; axis < 2; ++axis) {
        for (const auto& line : lines(axis)) {
            for (std::size_t place = 0; place < line.size(); ++place) {
                const std::size_t last = line.size() - 1;
                const std::size_t next = line[place == last ? 0 : place + 1];
                const std::size_t previous = line[place == 0 ? last : place - 1];
                if (place < last || (is_ring(axis) && last > 1)) {
                    file << separator << "{\"from\": " << line[place] << ", \"to\": " << next
                         << ", \"bytes\": " << forward_[axis][line[place]] << "}";
                    separator = ", ";
                }
                if (place > 0 || (is_ring(axis) && last > 1)) {
                    file << separator << "{\"from\": " << line[place] << ", \"to\": " << previous
                         << ", \"bytes\": " << backward_[axis][line[place]] << "}";
                    separator = ", ";
                }
            }
        }
    }
    file << "]}\n";
    file.flush();
    TT_FATAL(file.good(), "Cannot write the report '{}' (TTCODEGEN_FABRIC_REPORT)", path);
}

}  // namespace ttcodegen::cpu
