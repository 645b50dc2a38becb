#include "support/distribution.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <tt-metalium/mesh_buffer.hpp>
#include <tt-metalium/mesh_command_queue.hpp>
#include <tt-metalium/mesh_coord.hpp>
#include <utility>

#include "support/pages.hpp"

namespace support {

using tt::tt_metal::DataType;
using tt::tt_metal::Layout;
using tt::tt_metal::distributed::MeshCoordinate;
using tt::tt_metal::distributed::MeshDevice;
using tt::tt_metal::distributed::ShardDataTransfer;

namespace {

using Sizes = std::vector<std::uint64_t>;
using Place = std::array<std::uint32_t, 2>;

/// The number of shards along each axis of a mesh.
Place parts_along(const Division& division, const MeshDevice& mesh) {
    return {division[0] >= 0 ? static_cast<std::uint32_t>(mesh.num_rows()) : 1,
            division[1] >= 0 ? static_cast<std::uint32_t>(mesh.num_cols()) : 1};
}

/// The devices that hold the shard at a place.
std::vector<MeshCoordinate> devices_at(const Place& place, const Division& division,
                                       const MeshDevice& mesh) {
    std::vector<MeshCoordinate> devices;
    for (std::uint32_t row = 0; row < mesh.num_rows(); ++row) {
        for (std::uint32_t column = 0; column < mesh.num_cols(); ++column) {
            if ((division[0] < 0 || row == place[0]) && (division[1] < 0 || column == place[1])) {
                devices.emplace_back(row, column);
            }
        }
    }
    return devices;
}

/// Multiplies the sharded dimensions by the number of their shards.
Sizes whole_of(Sizes part, const Division& division, const Place& along) {
    for (const std::size_t axis : {0, 1}) {
        if (division[axis] >= 0) {
            part[static_cast<std::size_t>(division[axis])] *= along[axis];
        }
    }
    return part;
}

/// Calls `copy(element of the whole, element of the part, count)` for each run of elements that is
/// contiguous in both.
template <typename Copy>
void for_each_run(const Sizes& part, const Division& division, const Place& along,
                  const Place& place, Copy copy) {
    const Sizes whole = whole_of(part, division, along);
    // The first coordinates of the shard.
    Sizes first(part.size(), 0);
    for (const std::size_t axis : {0, 1}) {
        if (division[axis] >= 0) {
            std::uint64_t& index = first[static_cast<std::size_t>(division[axis])];
            index = index * along[axis] + place[axis];
        }
    }
    const auto last = static_cast<std::size_t>(std::ranges::max(division));
    const std::uint64_t inner = element_count(std::span(part).subspan(last + 1));
    const std::uint64_t run = part[last] * inner;
    const std::uint64_t rows = element_count(std::span(part).first(last));
    for (std::uint64_t row = 0; row < rows; ++row) {
        std::uint64_t element = first[last] * run;
        std::uint64_t step = whole[last] * inner;
        std::uint64_t rest = row;
        for (std::size_t dim = last; dim-- > 0;) {
            element += (first[dim] * part[dim] + rest % part[dim]) * step;
            rest /= part[dim];
            step *= whole[dim];
        }
        copy(element, row * run, run);
    }
}

/// Calls `visit(place)` for each shard.
template <typename Visit>
void for_each_part(const Place& along, Visit visit) {
    for (std::uint32_t row = 0; row < along[0]; ++row) {
        for (std::uint32_t column = 0; column < along[1]; ++column) {
            visit(Place{row, column});
        }
    }
}

}  // namespace

DeviceTensor distribute(const ArrayView& array, DataType data_type, Layout layout,
                        const Division& division, MeshDevice& device) {
    const Place along = parts_along(division, device);
    Sizes part(array.shape.begin(), array.shape.end());
    for (const std::size_t axis : {0, 1}) {
        if (division[axis] >= 0) {
            part[static_cast<std::size_t>(division[axis])] /= along[axis];
        }
    }
    DeviceTensor tensor = create_tensor(std::move(part), data_type, layout, device);
    tensor.division = division;
    write_parts(array, tensor);
    return tensor;
}

void write_parts(const ArrayView& array, const DeviceTensor& tensor) {
    MeshDevice& mesh = *tensor.buffer->device();
    const Place along = parts_along(tensor.division, mesh);
    const std::size_t size = element_size(array.type);
    const auto* const elements = static_cast<const std::byte*>(array.data);
    std::vector<std::byte> part(element_count(tensor.shape) * size);
    for_each_part(along, [&](const Place& place) {
        for_each_run(tensor.shape, tensor.division, along, place,
                     [&](std::uint64_t from, std::uint64_t to, std::uint64_t count) {
                         std::memcpy(part.data() + to * size, elements + from * size, count * size);
                     });
        std::vector<std::byte> pages =
            to_pages({array.type, tensor.shape, part.data()}, tensor.data_type, tensor.layout);
        std::vector<ShardDataTransfer> transfers;
        for (const MeshCoordinate& device : devices_at(place, tensor.division, mesh)) {
            transfers.push_back(ShardDataTransfer(device).host_data(pages.data()));
        }
        // The source is freed at the end of this iteration, so the transfer is blocking.
        mesh.mesh_command_queue().enqueue_write_shards(tensor.buffer, transfers,
                                                       /*blocking=*/true);
    });
}

Array composed(const DeviceTensor& tensor) {
    const MeshDevice& mesh = *tensor.buffer->device();
    const Place along = parts_along(tensor.division, mesh);
    const ElementType type = element_type(tensor.data_type);
    const std::size_t size = element_size(type);
    Array whole{type, whole_shape(tensor), {}};
    whole.bytes.resize(element_count(whole.shape) * size);
    for_each_part(along, [&](const Place& place) {
        const Array part = to_array(tensor, devices_at(place, tensor.division, mesh).front());
        for_each_run(tensor.shape, tensor.division, along, place,
                     [&](std::uint64_t to, std::uint64_t from, std::uint64_t count) {
                         std::memcpy(whole.bytes.data() + to * size,
                                     part.bytes.data() + from * size, count * size);
                     });
    });
    return whole;
}

std::vector<std::uint64_t> whole_shape(const DeviceTensor& tensor) {
    const Division& division = tensor.division;
    return whole_of(tensor.shape, division, parts_along(division, *tensor.buffer->device()));
}

}  // namespace support
