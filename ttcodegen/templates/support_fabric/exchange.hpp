#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tt-metalium/distributed.hpp>
#include <tt-metalium/experimental/fabric/fabric.hpp>
#include <tt-metalium/global_semaphore.hpp>
#include <tt-metalium/host_api.hpp>
#include <tt-metalium/mesh_coord.hpp>
#include <tt-metalium/mesh_device.hpp>
#include <tt-metalium/mesh_workload.hpp>
#include <tt-metalium/tt_backend_api_types.hpp>
#include <utility>
#include <vector>

#include "support/device_tensor.hpp"
#include "support/workload.hpp"

namespace support {

/// Pages that the devices along a mesh axis send to each other and to themselves.
struct Sharing {
    /// 0 for the devices of a column, 1 for those of a row.
    std::uint32_t axis;
    /// The number of pages of each share.
    std::uint32_t pages;
    /// The number of consecutive pages of a share in the source and in the target.
    std::uint32_t source_run;
    std::uint32_t target_run;
    /// Each device gets a different part of the source; otherwise all get the whole source.
    bool divides;
    /// The target concatenates the shares of all devices; else each device keeps its own share, or
    /// gets the one that `pairs` assign.
    bool joins;
    /// Pairs of sender and receiver of a whole source, as row-major indices of devices; a device
    /// that is no receiver gets zeros.
    std::vector<std::array<std::uint32_t, 2>> pairs = {};

    /// Returns whether any page is sent over links.
    bool connects() const {
        return joins ||
               std::ranges::any_of(pairs, [](const auto& pair) { return pair[0] != pair[1]; });
    }
};

/// Programs that exchange pages of devices over their ethernet links, one for each device: it sends
/// packets to others of its row or column, and waits for theirs. Built once and kept.
class Exchange {
  public:
    /// Fills `target` with the shares of `source` of all devices.
    /// @param kernel the path of exchange_pages.cpp.
    void run(const DeviceTensor& source, const DeviceTensor& target, const Sharing& sharing,
             const std::string& kernel, tt::tt_metal::distributed::MeshDevice& device) {
        if (!workload_.has_value()) {
            build(source, target, sharing, kernel, device);
        }
        for (auto& [range, program] : workload_->get_programs()) {
            std::vector<std::uint32_t>& arguments = chip_at(range).arguments;
            arguments[0] = source.address();
            arguments[1] = target.address();
            SetRuntimeArgs(program, chip_at(range).kernel, core, arguments);
        }
        EnqueueMeshWorkload(device.mesh_command_queue(), *workload_, /*blocking=*/false);
    }

  private:
    struct Chip {
        tt::tt_metal::distributed::MeshCoordinateRange range;
        tt::tt_metal::KernelHandle kernel;
        std::vector<std::uint32_t> arguments;
    };

    inline static const tt::tt_metal::CoreCoord core{0, 0};

    Chip& chip_at(const tt::tt_metal::distributed::MeshCoordinateRange& range) {
        const auto& first = range.start_coord();
        return chips_[first[0] * columns_ + first[1]];
    }

    void build(const DeviceTensor& source, const DeviceTensor& target, const Sharing& sharing,
               const std::string& kernel, tt::tt_metal::distributed::MeshDevice& device) {
        using tt::tt_metal::CoreRange;
        using tt::tt_metal::CoreRangeSet;
        columns_ = static_cast<std::uint32_t>(device.num_cols());
        const CoreRangeSet cores(CoreRange(core, core));
        if (sharing.connects()) {
            ready_ = CreateGlobalSemaphore(&device, cores, 0);
            arrived_ = CreateGlobalSemaphore(&device, cores, 0);
        }
        workload_.emplace();
        for (std::uint32_t row = 0; row < device.num_rows(); ++row) {
            for (std::uint32_t column = 0; column < columns_; ++column) {
                add_chip(source, target, sharing, kernel, device, {row, column});
            }
        }
    }

    void add_chip(const DeviceTensor& source, const DeviceTensor& target, const Sharing& sharing,
                  const std::string& kernel, tt::tt_metal::distributed::MeshDevice& device,
                  const tt::tt_metal::distributed::MeshCoordinate& chip) {
        using tt::tt_metal::CoreRange;
        const auto chips = static_cast<std::uint32_t>(device.shape()[sharing.axis]);
        const auto page_size = source.buffer->page_size();
        const auto header_size =
            static_cast<std::uint32_t>(tt::tt_fabric::get_tt_fabric_packet_header_size_bytes());
        tt::tt_metal::Program program = tt::tt_metal::CreateProgram();
        const CoreRange cores(core, core);
        create_circular_buffer(program, cores, 0, tt::DataFormat::UInt32, 1, page_size);
        create_circular_buffer(program, cores, 1, tt::DataFormat::UInt32, 1, header_size);
        const auto handle = CreateKernel(
            program, kernel, cores,
            tt::tt_metal::WriterDataMovementConfig(accessor_args({&source, &target}), {},
                                                   {{"cb_page", 0},
                                                    {"cb_header", 1},
                                                    {"page_size", page_size},
                                                    {"pages", sharing.pages},
                                                    {"source_run", sharing.source_run},
                                                    {"target_run", sharing.target_run},
                                                    {"divides", sharing.divides ? 1 : 0},
                                                    {"joins", sharing.joins ? 1 : 0},
                                                    {"connects", sharing.connects() ? 1 : 0},
                                                    {"chips", chips}}));
        std::vector<std::uint32_t> arguments = {0,
                                                0,
                                                semaphore_address(ready_),
                                                semaphore_address(arrived_),
                                                chip[sharing.axis],
                                                chips_given(sharing, device, chip, 0),
                                                chips_given(sharing, device, chip, 1)};
        if (sharing.connects()) {
            for (const int step : {1, -1}) {
                connect(device, chip, sharing.axis, step, program, arguments);
            }
        }
        const tt::tt_metal::distributed::MeshCoordinateRange range(chip, chip);
        chips_.push_back({range, handle, std::move(arguments)});
        workload_->add_program(range, std::move(program));
    }

    /// The devices along the axis that a device sends to (`side` 0) or receives from (1), as a bit
    /// for the position of each.
    static std::uint32_t chips_given(const Sharing& sharing,
                                     const tt::tt_metal::distributed::MeshDevice& device,
                                     const tt::tt_metal::distributed::MeshCoordinate& chip,
                                     std::size_t side) {
        const std::uint32_t place = chip[sharing.axis];
        if (sharing.joins) {
            return ~0U >> (32 - device.shape()[sharing.axis]);
        }
        if (sharing.pairs.empty()) {
            return 1U << place;
        }
        const auto columns = static_cast<std::uint32_t>(device.num_cols());
        std::uint32_t chips = 0;
        for (const auto& pair : sharing.pairs) {
            if (pair[side] == chip[0] * columns + chip[1]) {
                const std::uint32_t other = pair[1 - side];
                chips |= 1U << (sharing.axis == 0 ? other / columns : other % columns);
            }
        }
        return chips;
    }

    /// Appends a flag for a neighbour in that direction, and the connection to it.
    static void connect(tt::tt_metal::distributed::MeshDevice& device,
                        const tt::tt_metal::distributed::MeshCoordinate& chip, std::uint32_t axis,
                        int step, tt::tt_metal::Program& program,
                        std::vector<std::uint32_t>& arguments) {
        const auto node = device.get_fabric_node_id(chip);
        const bool has_next = step > 0 ? chip[axis] + 1 < device.shape()[axis] : chip[axis] > 0;
        arguments.push_back(has_next ? 1 : 0);
        if (has_next) {
            const auto by = static_cast<std::uint32_t>(step);
            const tt::tt_metal::distributed::MeshCoordinate next(chip[0] + (axis == 0 ? by : 0),
                                                                 chip[1] + (axis == 1 ? by : 0));
            tt::tt_fabric::append_fabric_connection_rt_args(node, device.get_fabric_node_id(next),
                                                            /*link_idx=*/0, program, core,
                                                            arguments);
        }
    }

    static std::uint32_t semaphore_address(
        const std::optional<tt::tt_metal::GlobalSemaphore>& semaphore) {
        return semaphore ? static_cast<std::uint32_t>(semaphore->address()) : 0;
    }

    std::optional<tt::tt_metal::distributed::MeshWorkload> workload_;
    /// In row-major order.
    std::vector<Chip> chips_;
    std::uint32_t columns_ = 0;
    std::optional<tt::tt_metal::GlobalSemaphore> ready_;
    std::optional<tt::tt_metal::GlobalSemaphore> arrived_;
};

}  // namespace support
