// Device programs on a mesh: each chip has its own tensors.

#include "device/device_testing.hpp"
#include "tt-metalium/mesh_command_queue.hpp"

namespace {

using namespace device_testing;
using distributed::MeshCoordinate;
using distributed::MeshCoordinateRange;
using distributed::ShardDataTransfer;

constexpr std::uint32_t kBytes = 4 * kTileBytes;

const std::string kCopy = R"(
#include "api/dataflow/dataflow_api.h"
void kernel_main() {
    const uint32_t from = get_arg_val<uint32_t>(0);
    const uint32_t to = get_arg_val<uint32_t>(1);
    const uint32_t pages = get_arg_val<uint32_t>(2);
    const InterleavedAddrGen<true> source = {.bank_base_address = from, .page_size = 2048};
    const InterleavedAddrGen<true> target = {.bank_base_address = to, .page_size = 2048};
    for (uint32_t page = 0; page < pages; ++page) {
        cb_reserve_back(0, 1);
        noc_async_read(get_noc_addr(page, source), get_write_ptr(0), 2048);
        noc_async_read_barrier();
        noc_async_write(get_write_ptr(0), get_noc_addr(page, target), 2048);
        noc_async_write_barrier();
    }
}
)";

std::shared_ptr<distributed::MeshDevice> open() {
    return distributed::MeshDevice::create(
        distributed::MeshDeviceConfig(distributed::MeshShape(1, 2)));
}

std::shared_ptr<distributed::MeshBuffer> buffer_on(distributed::MeshDevice& mesh,
                                                   BufferType type = BufferType::DRAM) {
    const distributed::DeviceLocalBufferConfig local{.page_size = kTileBytes, .buffer_type = type};
    return distributed::MeshBuffer::create(distributed::ReplicatedBufferConfig{.size = kBytes},
                                           local, &mesh);
}

Arguments words_from(std::uint32_t first) {
    Arguments words(kBytes / 4);
    for (std::uint32_t& word : words) {
        word = first++;
    }
    return words;
}

std::vector<ShardDataTransfer> transfers(std::vector<Arguments>& shards) {
    std::vector<ShardDataTransfer> result;
    for (std::uint32_t chip = 0; chip < shards.size(); ++chip) {
        result.push_back(ShardDataTransfer(MeshCoordinate(0, chip)).host_data(shards[chip].data()));
    }
    return result;
}

void run_copy(distributed::MeshDevice& mesh, const MeshCoordinateRange& chips,
              const distributed::MeshBuffer& from, const distributed::MeshBuffer& to) {
    Program program = CreateProgram();
    const CoreRange core({0, 0}, {0, 0});
    add_circular_buffer(program, core, 0, 1);
    const KernelHandle kernel = add_reader(program, core, kCopy);
    SetRuntimeArgs(program, kernel, CoreCoord(0, 0),
                   {static_cast<std::uint32_t>(from.address()),
                    static_cast<std::uint32_t>(to.address()), kBytes / kTileBytes});
    distributed::MeshWorkload workload;
    workload.add_program(chips, std::move(program));
    distributed::EnqueueMeshWorkload(mesh.mesh_command_queue(), workload, false);
}

void each_chip_has_its_share() {
    const auto mesh = open();
    expect(mesh->num_devices() == 2 && mesh->num_cols() == 2, "the mesh has two devices in a row");
    auto& queue = mesh->mesh_command_queue();
    const auto from = buffer_on(*mesh);
    const auto to = buffer_on(*mesh);
    std::vector<Arguments> shards = {words_from(0), words_from(1 << 20)};
    queue.enqueue_write_shards(from, transfers(shards), true);
    run_copy(*mesh, MeshCoordinateRange(mesh->shape()), *from, *to);
    std::vector<Arguments> found(2, Arguments(kBytes / 4));
    queue.enqueue_read_shards(transfers(found), to, true);
    expect(found == shards, "each device copies what it has");

    // A write to all devices reaches each; a program on one does not change the other.
    const Arguments zeros(kBytes / 4);
    queue.enqueue_write_mesh_buffer(to, zeros.data(), true);
    run_copy(*mesh, MeshCoordinateRange(MeshCoordinate(0, 1)), *from, *to);
    queue.enqueue_read_shards(transfers(found), to, true);
    expect(found[0] == zeros && found[1] == shards[1], "the second device copies alone");

    // Nor does a program of one change the L1 of the other.
    const auto in_l1 = buffer_on(*mesh, BufferType::L1);
    queue.enqueue_write_shards(in_l1, transfers(shards), true);
    run_copy(*mesh, MeshCoordinateRange(mesh->shape()), *from, *to);
    queue.enqueue_read_shards(transfers(found), in_l1, true);
    expect(found == shards, "each device has L1 of its own");
}

void misuse_is_refused() {
    const auto mesh = open();
    auto& queue = mesh->mesh_command_queue();
    const auto buffer = buffer_on(*mesh);
    Arguments words(kBytes / 4);
    std::vector<Arguments> found(2, words);
    expect_diagnosis([&] { queue.enqueue_read_mesh_buffer(words.data(), buffer, true); },
                     {"Can only read a Sharded MeshBuffer"});
    queue.enqueue_write_shards(
        buffer, {ShardDataTransfer(MeshCoordinate(0, 0)).host_data(words.data())}, true);
    expect_diagnosis([&] { queue.enqueue_read_shards(transfers(found), buffer, true); },
                     {"which nobody wrote"});
    expect_diagnosis(
        [&] { run_copy(*mesh, MeshCoordinateRange(MeshCoordinate(0, 2)), *buffer, *buffer); },
        {"no device in the range"});
}

}  // namespace

int main() {
    each_chip_has_its_share();
    misuse_is_refused();
}
