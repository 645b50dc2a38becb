#pragma once

#include <tt-metalium/mesh_coord.hpp>
#include <tt-metalium/mesh_device.hpp>
#include <type_traits>

#include "support/cpu/mesh.hpp"
#include "support/cpu/transfer.hpp"

namespace support::cpu {

/// The coordinates of the devices of a mesh, in row-major order.
inline std::vector<tt::tt_metal::distributed::MeshCoordinate> places_of(
    const tt::tt_metal::distributed::MeshDevice& mesh) {
    std::vector<tt::tt_metal::distributed::MeshCoordinate> places;
    for (std::uint32_t row = 0; row < mesh.num_rows(); ++row) {
        for (std::uint32_t column = 0; column < mesh.num_cols(); ++column) {
            places.emplace_back(row, column);
        }
    }
    return places;
}

/// Reads the shard of each device after the programs that write it have run.
inline Parts parts_from_device(const DeviceTensor& tensor) {
    Parts parts;
    for (const auto& place : places_of(*tensor.buffer->device())) {
        parts.push_back(from_array(to_array(tensor, place)));
    }
    return parts;
}

/// Overwrites the shard of each device.
inline void to_device(const Parts& parts, const DeviceTensor& target) {
    auto& queue = target.buffer->device()->mesh_command_queue();
    const auto places = places_of(*target.buffer->device());
    for (std::size_t chip = 0; chip < parts.size(); ++chip) {
        std::vector<std::byte> pages = pages_for(parts[chip], target);
        // The source is freed at the end of this iteration, so the transfer is blocking.
        queue.enqueue_write_shards(
            target.buffer,
            {tt::tt_metal::distributed::ShardDataTransfer(places[chip]).host_data(pages.data())},
            /*blocking=*/true);
    }
}

/// Applies a function to the shards of its operands on each device.
template <typename Function, typename First, typename... Others>
auto on_each_chip(Function function, First&& first, Others&&... others) {
    using Result = decltype(function(first[0], others[0]...));
    const std::size_t chips = first.size();
    if constexpr (std::is_void_v<Result>) {
        for (std::size_t chip = 0; chip < chips; ++chip) {
            function(first[chip], others[chip]...);
        }
    } else if constexpr (std::is_same_v<Result, Tensor>) {
        Parts results;
        for (std::size_t chip = 0; chip < chips; ++chip) {
            results.push_back(function(first[chip], others[chip]...));
        }
        return results;
    } else {
        std::array<Parts, std::tuple_size_v<Result>> results;
        for (std::size_t chip = 0; chip < chips; ++chip) {
            Result found = function(first[chip], others[chip]...);
            for (std::size_t i = 0; i < found.size(); ++i) {
                results[i].push_back(std::move(found[i]));
            }
        }
        return results;
    }
}

/// Applies a function without operands for each device.
template <typename Function>
auto on_each_chip(Function function, tt::tt_metal::distributed::MeshDevice& mesh) {
    return on_each_chip([&](auto&) { return function(); }, places_of(mesh));
}

}  // namespace support::cpu
