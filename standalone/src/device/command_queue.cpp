#include "device/command_queue.hpp"

#include <algorithm>
#include <list>
#include <utility>
#include <vector>

#include "core/describe.hpp"
#include "core/device.hpp"
#include "core/trace.hpp"
#include "device/buffer_pages.hpp"
#include "device/program.hpp"
#include "device/program_runner.hpp"
#include "tt-metalium/distributed.hpp"

namespace tt::tt_metal::distributed {

class MeshWorkloadImpl {
  public:
    std::unordered_map<MeshCoordinateRange, Program> programs;
    /// Set once the device has the kernels: they are sent with the first run.
    bool is_loaded = false;
    /// Expires with the workload, and with it the device's copies of it.
    std::shared_ptr<const char> life = std::make_shared<char>();
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

/// The arguments of a program for a run: runtime arguments, and circular buffers, which may be in
/// the memory of buffers.
class ProgramArguments {
  public:
    explicit ProgramArguments(const tt::tt_metal::detail::ProgramImpl& program) {
        for (const auto& kernel : program.kernels) {
            kernels_.push_back({kernel->arguments, kernel->common_arguments});
        }
        for (const auto& buffer : program.circular_buffers) {
            circular_buffers_.push_back(buffer->config);
        }
    }

    /// Sets the program's arguments while the object lives.
    class Set {
      public:
        Set(ProgramArguments& arguments, tt::tt_metal::detail::ProgramImpl& program)
            : arguments_(arguments), program_(program) {
            arguments_.swap(program_);
        }
        ~Set() { arguments_.swap(program_); }
        Set(const Set&) = delete;
        Set& operator=(const Set&) = delete;
        Set(Set&&) = delete;
        Set& operator=(Set&&) = delete;

      private:
        ProgramArguments& arguments_;
        tt::tt_metal::detail::ProgramImpl& program_;
    };

  private:
    struct KernelArguments {
        std::map<CoreCoord, std::vector<std::uint32_t>> by_core;
        std::vector<std::uint32_t> common;
    };

    /// The host's views of its arguments stay valid: vectors are moved as a whole.
    void swap(tt::tt_metal::detail::ProgramImpl& program) {
        for (std::size_t i = 0; i < kernels_.size(); ++i) {
            std::swap(kernels_[i].by_core, program.kernels[i]->arguments);
            std::swap(kernels_[i].common, program.kernels[i]->common_arguments);
        }
        for (std::size_t i = 0; i < circular_buffers_.size(); ++i) {
            std::swap(circular_buffers_[i], program.circular_buffers[i]->config);
        }
    }

    std::vector<KernelArguments> kernels_;
    std::vector<tt::tt_metal::CircularBufferConfig> circular_buffers_;
};

class ImmediateCommandQueue final : public MeshCommandQueue {
  public:
    ImmediateCommandQueue(MeshDevice* device, std::uint32_t id) : MeshCommandQueue(device, id) {}

    void enqueue_mesh_workload(MeshWorkload& mesh_workload, bool blocking) override {
        const MeshCoordinateRange all(mesh_device_->shape());
        for (const auto& [range, program] : mesh_workload.get_programs()) {
            TT_FATAL(all.contains(range.start_coord()) && all.contains(range.end_coord()),
                     "The mesh has no device in the range of the program");
        }
        if (ttcodegen::cpu::current_capture() != nullptr) {
            record(mesh_workload, blocking);
            return;
        }
        run_programs(mesh_device_->impl().emulated(), chip_programs(mesh_workload));
        mesh_workload.impl().is_loaded = true;
    }

    void enqueue_write_mesh_buffer(const std::shared_ptr<MeshBuffer>& buffer, const void* host_data,
                                   bool /*blocking*/) override {
        ttcodegen::cpu::refuse_write_in_capture();
        for_each_chip(MeshCoordinateRange(mesh_device_->shape()), [&](std::size_t chip) {
            write(*buffer, chip, host_data, BufferRegion(0, buffer->device_local_size()));
        });
    }

    void enqueue_write_shards(const std::shared_ptr<MeshBuffer>& mesh_buffer,
                              const std::vector<ShardDataTransfer>& shard_data_transfers,
                              bool /*blocking*/) override {
        ttcodegen::cpu::refuse_write_in_capture();
        for (const ShardDataTransfer& transfer : shard_data_transfers) {
            write(*mesh_buffer, chip_at(transfer.shard_coord()), transfer.host_data(),
                  region_of(*mesh_buffer, transfer));
        }
    }

    void enqueue_read_mesh_buffer(void* host_data, const std::shared_ptr<MeshBuffer>& buffer,
                                  bool /*blocking*/) override {
        ttcodegen::cpu::refuse_read_in_capture();
        TT_FATAL(mesh_device_->num_devices() == 1,
                 "Can only read a Sharded MeshBuffer from a MeshDevice or a Replicated MeshBuffer "
                 "from a Unit-Mesh.");
        read(*buffer, 0, host_data, BufferRegion(0, buffer->device_local_size()));
    }

    void enqueue_read_shards(const std::vector<ShardDataTransfer>& shard_data_transfers,
                             const std::shared_ptr<MeshBuffer>& mesh_buffer,
                             bool /*blocking*/) override {
        ttcodegen::cpu::refuse_read_in_capture();
        for (const ShardDataTransfer& transfer : shard_data_transfers) {
            read(*mesh_buffer, chip_at(transfer.shard_coord()), transfer.host_data(),
                 region_of(*mesh_buffer, transfer));
        }
    }

    void finish(ttsl::Span<const SubDeviceId> /*sub_device_ids*/) override {
        ttcodegen::cpu::refuse_event_in_capture();
    }

  private:
    /// The programs of a workload with the chips that run them, chip by chip.
    std::vector<ChipProgram> chip_programs(MeshWorkload& mesh_workload) const {
        std::vector<ChipProgram> programs;
        for (auto& [range, program] : mesh_workload.get_programs()) {
            for_each_chip(range, [&, &run = program.impl()](std::size_t chip) {
                programs.push_back({chip, &run});
            });
        }
        std::ranges::sort(programs, {}, &ChipProgram::chip);
        return programs;
    }

    /// Records the programs of a workload with their current runtime arguments.
    void record(MeshWorkload& mesh_workload, bool blocking) const {
        TT_FATAL(!blocking, "Blocking is not supported when recording a trace.");
        if (!mesh_workload.impl().is_loaded) {
            ttcodegen::cpu::refuse_write_in_capture();
        }
        std::vector<std::pair<tt::tt_metal::detail::ProgramImpl*, ProgramArguments>> given;
        for (auto& [range, program] : mesh_workload.get_programs()) {
            given.emplace_back(&program.impl(), ProgramArguments(program.impl()));
        }
        const std::size_t count = given.size();
        ttcodegen::cpu::current_capture()->add_programs(
            count,
            [this, programs = chip_programs(mesh_workload),
             life = std::weak_ptr(mesh_workload.impl().life), given = std::move(given)]() mutable {
                TT_FATAL(!life.expired(),
                         "The trace runs a program of a workload that is gone, and its kernels "
                         "with it");
                std::list<ProgramArguments::Set> set;
                for (auto& [program, arguments] : given) {
                    set.emplace_back(arguments, *program);
                }
                run_programs(mesh_device_->impl().emulated(), programs);
            });
    }

    /// The row-major index of a device in the mesh.
    std::size_t chip_at(const MeshCoordinate& place) const {
        return place[0] * mesh_device_->num_cols() + place[1];
    }

    template <typename Visit>
    void for_each_chip(const MeshCoordinateRange& range, Visit visit) const {
        const MeshCoordinate& first = range.start_coord();
        const MeshCoordinate& last = range.end_coord();
        for (std::uint32_t row = first[0]; row <= last[0]; ++row) {
            for (std::uint32_t column = first[1]; column <= last[1]; ++column) {
                visit(chip_at(MeshCoordinate(row, column)));
            }
        }
    }

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

    static void write(const MeshBuffer& buffer, std::size_t chip, const void* data,
                      const BufferRegion& region) {
        write_pages(*buffer.get_reference_buffer(), chip, static_cast<const std::byte*>(data),
                    region.offset, region.size);
    }

    static void read(const MeshBuffer& buffer, std::size_t chip, void* data,
                     const BufferRegion& region) {
        read_pages(*buffer.get_reference_buffer(), chip, static_cast<std::byte*>(data),
                   region.offset, region.size);
    }
};

}  // namespace

std::unique_ptr<MeshCommandQueue> make_command_queue(MeshDevice* device, std::uint32_t id) {
    return std::make_unique<ImmediateCommandQueue>(device, id);
}

}  // namespace ttcodegen::device
