#include "device/command_queue.hpp"

#include "core/describe.hpp"
#include "core/device.hpp"
#include "device/buffer_pages.hpp"
#include "device/program_runner.hpp"
#include "tt-metalium/distributed.hpp"

namespace tt::tt_metal::distributed {

class MeshWorkloadImpl {
  public:
    std::unordered_map<MeshCoordinateRange, Program> programs;
};

MeshWorkload::MeshWorkload() : pimpl_(std::make_unique<MeshWorkloadImpl>()) {}
MeshWorkload::~MeshWorkload() = default;
MeshWorkload::MeshWorkload(MeshWorkload&& other) noexcept = default;
MeshWorkload& MeshWorkload::operator=(MeshWorkload&& other) noexcept = default;

void MeshWorkload::add_program(const MeshCoordinateRange& device_range, Program&& program) {
    for (const auto& [range, other] : pimpl_->programs) {
        TT_FATAL(!range.intersects(device_range),
                 "The range of the program overlaps that of another program of the workload");
    }
    pimpl_->programs.emplace(device_range, std::move(program));
}

std::unordered_map<MeshCoordinateRange, Program>& MeshWorkload::get_programs() {
    return pimpl_->programs;
}
const std::unordered_map<MeshCoordinateRange, Program>& MeshWorkload::get_programs() const {
    return pimpl_->programs;
}

void EnqueueMeshWorkload(MeshCommandQueue& mesh_cq, MeshWorkload& mesh_workload, bool blocking) {
    mesh_cq.enqueue_mesh_workload(mesh_workload, blocking);
}

void Finish(MeshCommandQueue& mesh_cq, ttsl::Span<const SubDeviceId> sub_device_ids) {
    mesh_cq.finish(sub_device_ids);
}

}  // namespace tt::tt_metal::distributed

namespace ttcodegen::device {

using tt::tt_metal::BufferRegion;
using tt::tt_metal::SubDeviceId;
using namespace tt::tt_metal::distributed;

namespace {

class ImmediateCommandQueue final : public MeshCommandQueue {
  public:
    ImmediateCommandQueue(MeshDevice* device, std::uint32_t id) : MeshCommandQueue(device, id) {}

    void enqueue_mesh_workload(MeshWorkload& mesh_workload, bool /*blocking*/) override {
        for (auto& [range, program] : mesh_workload.get_programs()) {
            TT_FATAL(MeshCoordinateRange(mesh_device_->shape()).intersects(range),
                     "The mesh has no device in the range of the program");
            run_program(mesh_device_->impl().emulated(), program.impl());
        }
    }

    void enqueue_write_mesh_buffer(const std::shared_ptr<MeshBuffer>& buffer, const void* host_data,
                                   bool /*blocking*/) override {
        write(*buffer, host_data, BufferRegion(0, buffer->device_local_size()));
    }

    void enqueue_write_shards(const std::shared_ptr<MeshBuffer>& mesh_buffer,
                              const std::vector<ShardDataTransfer>& shard_data_transfers,
                              bool /*blocking*/) override {
        for (const ShardDataTransfer& transfer : shard_data_transfers) {
            write(*mesh_buffer, transfer.host_data(), region_of(*mesh_buffer, transfer));
        }
    }

    void enqueue_read_mesh_buffer(void* host_data, const std::shared_ptr<MeshBuffer>& buffer,
                                  bool /*blocking*/) override {
        read(*buffer, host_data, BufferRegion(0, buffer->device_local_size()));
    }

    void enqueue_read_shards(const std::vector<ShardDataTransfer>& shard_data_transfers,
                             const std::shared_ptr<MeshBuffer>& mesh_buffer,
                             bool /*blocking*/) override {
        for (const ShardDataTransfer& transfer : shard_data_transfers) {
            read(*mesh_buffer, transfer.host_data(), region_of(*mesh_buffer, transfer));
        }
    }

    void finish(ttsl::Span<const SubDeviceId> /*sub_device_ids*/) override {}

  private:
    static BufferRegion region_of(const MeshBuffer& buffer, const ShardDataTransfer& transfer) {
        const auto* place = buffer.get_device_buffer(transfer.shard_coord());
        const BufferRegion region = transfer.region().value_or(BufferRegion(0, place->size()));
        TT_FATAL(region.offset % place->page_size() == 0,
                 "Region offset must be a multiple of page size");
        TT_FATAL(region.size % place->page_size() == 0,
                 "Region size must be a multiple of page size");
        TT_FATAL(region.offset + region.size <= place->size(), "Region must be within buffer");
        return region;
    }

    static void write(const MeshBuffer& buffer, const void* data, const BufferRegion& region) {
        write_pages(*buffer.get_reference_buffer(), static_cast<const std::byte*>(data),
                    region.offset, region.size);
    }

    static void read(const MeshBuffer& buffer, void* data, const BufferRegion& region) {
        read_pages(*buffer.get_reference_buffer(), static_cast<std::byte*>(data), region.offset,
                   region.size);
    }
};

}  // namespace

std::unique_ptr<MeshCommandQueue> make_command_queue(MeshDevice* device, std::uint32_t id) {
    return std::make_unique<ImmediateCommandQueue>(device, id);
}

}  // namespace ttcodegen::device
