// Kernels that send packets to other devices of a mesh.

#include "device/device_testing.hpp"
#include "tt-metalium/experimental/fabric/fabric.hpp"
#include "tt-metalium/global_semaphore.hpp"
#include "tt-metalium/mesh_command_queue.hpp"

namespace {

using namespace device_testing;
using distributed::MeshCoordinate;
using distributed::MeshCoordinateRange;

constexpr std::uint32_t kChips = 4;

const std::string kIncludes = R"(
#include "api/dataflow/dataflow_api.h"
#include "tt_metal/fabric/hw/inc/edm_fabric/fabric_connection_manager.hpp"
#include "tt_metal/fabric/hw/inc/linear/addrgen_api.h"
)";

// Sends its page `hops` devices forward, and waits for the page of the previous one.
const std::string kSend = kIncludes + R"(
void kernel_main() {
    const uint32_t address = get_arg_val<uint32_t>(0);
    const uint32_t semaphore = get_arg_val<uint32_t>(1);
    const uint32_t hops = get_arg_val<uint32_t>(2);
    const bool sends = get_arg_val<uint32_t>(3) != 0;
    const bool receives = get_arg_val<uint32_t>(4) != 0;
    std::size_t index = 5;
    auto connections = FabricConnectionManager::build_from_args(index);
    OPEN
    const InterleavedAddrGen<IN_DRAM> pages = {.bank_base_address = address, .page_size = 2048};
    if (sends) {
        const uint32_t page = get_write_ptr(0);
        auto* header = reinterpret_cast<volatile PACKET_HEADER_TYPE*>(get_write_ptr(1));
        noc_async_read(get_noc_addr(0, pages), page, 2048);
        noc_async_read_barrier();
        auto& sender = connections.get_forward_connection();
        header->to_chip_unicast(static_cast<uint8_t>(hops));
        tt::tt_fabric::linear::to_noc_unicast_write(BYTES, header, 1, pages);
        sender.wait_for_empty_write_slot();
        sender.send_payload_without_header_non_blocking_from_address(page, 2048);
        sender.send_payload_flush_blocking_from_address(get_write_ptr(1),
                                                        sizeof(PACKET_HEADER_TYPE));
        header->to_noc_unicast_atomic_inc(
            tt::tt_fabric::NocUnicastAtomicIncCommandHeader(get_noc_addr(semaphore), 1));
        sender.wait_for_empty_write_slot();
        sender.send_payload_flush_blocking_from_address(get_write_ptr(1),
                                                        sizeof(PACKET_HEADER_TYPE));
    }
    if (receives) {
        auto* arrived = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(semaphore);
        noc_semaphore_wait(arrived, 1);
        noc_semaphore_set(arrived, 0);
    }
    connections.close();
}
)";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    return text.replace(text.find(what), what.size(), by);
}

struct Variant {
    BufferType memory = BufferType::DRAM;
    std::string open = "connections.open();";
    std::string bytes = "2048";
    std::uint32_t hops = 1;
    /// The last devices of the line send too, as far as they have a neighbour.
    bool beyond = false;
    /// The first device waits for a packet that is never sent.
    bool in_vain = false;

    std::string kernel() const {
        std::string text = replaced(kSend, "OPEN", open);
        text = replaced(text, "IN_DRAM", memory == BufferType::DRAM ? "true" : "false");
        return replaced(text, "BYTES", bytes);
    }
};

std::shared_ptr<distributed::MeshDevice> open_line() {
    tt::tt_fabric::SetFabricConfig(tt::tt_fabric::FabricConfig::FABRIC_1D);
    return distributed::MeshDevice::create(
        distributed::MeshDeviceConfig(distributed::MeshShape(1, kChips)));
}

Program program_of(distributed::MeshDevice& mesh, std::uint32_t place, const Variant& variant,
                   std::uint32_t address, std::uint32_t semaphore) {
    Program program = CreateProgram();
    const CoreCoord core(0, 0);
    add_circular_buffer(program, CoreRange(core, core), 0, 1);
    add_circular_buffer(
        program, CoreRange(core, core), 1, 1,
        static_cast<std::uint32_t>(tt::tt_fabric::get_tt_fabric_packet_header_size_bytes()));
    const KernelHandle kernel = add_writer(program, CoreRange(core, core), variant.kernel());
    const bool has_next = place + 1 < kChips;
    const bool sends = has_next && (variant.beyond || place + variant.hops < kChips);
    const bool receives = place >= variant.hops || (variant.in_vain && place == 0);
    Arguments arguments = {address, semaphore, variant.hops, sends, receives};
    const auto node = [&](std::uint32_t chip) {
        return mesh.get_fabric_node_id(MeshCoordinate(0, chip));
    };
    arguments.push_back(has_next);
    if (has_next) {
        tt::tt_fabric::append_fabric_connection_rt_args(node(place), node(place + 1), 0, program,
                                                        core, arguments);
    }
    arguments.push_back(0);
    SetRuntimeArgs(program, kernel, core, arguments);
    return program;
}

/// The second page of each device after all have sent their first one.
std::vector<std::uint32_t> second_words(const Variant& variant) {
    const auto mesh = open_line();
    const distributed::DeviceLocalBufferConfig local{.page_size = kTileBytes,
                                                     .buffer_type = variant.memory};
    const auto buffer = distributed::MeshBuffer::create(
        distributed::ReplicatedBufferConfig{.size = 2 * kTileBytes}, local, mesh.get());
    auto& queue = mesh->mesh_command_queue();
    std::vector<Arguments> shards(kChips, Arguments(2 * kTileBytes / 4));
    std::vector<distributed::ShardDataTransfer> transfers;
    for (std::uint32_t chip = 0; chip < kChips; ++chip) {
        std::fill(shards[chip].begin(), shards[chip].end(), 10 + chip);
        transfers.push_back(
            distributed::ShardDataTransfer(MeshCoordinate(0, chip)).host_data(shards[chip].data()));
    }
    queue.enqueue_write_shards(buffer, transfers, true);
    const CoreRangeSet cores(CoreRange({0, 0}, {0, 0}));
    const GlobalSemaphore semaphore = CreateGlobalSemaphore(mesh.get(), cores, 0);
    distributed::MeshWorkload workload;
    for (std::uint32_t chip = 0; chip < kChips; ++chip) {
        workload.add_program(
            MeshCoordinateRange(MeshCoordinate(0, chip), MeshCoordinate(0, chip)),
            program_of(*mesh, chip, variant, static_cast<std::uint32_t>(buffer->address()),
                       static_cast<std::uint32_t>(semaphore.address())));
    }
    // Twice: the semaphores must be reset.
    distributed::EnqueueMeshWorkload(queue, workload, false);
    distributed::EnqueueMeshWorkload(queue, workload, false);
    queue.enqueue_read_shards(transfers, buffer, true);
    std::vector<std::uint32_t> words;
    for (const Arguments& shard : shards) {
        words.push_back(shard.back());
    }
    return words;
}

void packets_go_along_the_line() {
    using Words = std::vector<std::uint32_t>;
    for (const BufferType memory : {BufferType::DRAM, BufferType::L1}) {
        expect(second_words({.memory = memory}) == Words{10, 10, 11, 12}, "one device further");
        expect(second_words({.memory = memory, .hops = 3}) == Words{10, 11, 12, 10}, "three");
    }
}

void misuse_is_refused() {
    expect_diagnosis([] { second_words({.hops = 2, .beyond = true}); },
                     {"2 links from chip 2", "the line is shorter"});
    expect_diagnosis([] { second_words({.open = ""}); }, {"that is not open"});
    expect_diagnosis([] { second_words({.bytes = "1024"}); },
                     {"packet of 2048 bytes with a header for 1024"});
    expect_diagnosis([] { second_words({.in_vain = true}); }, {"deadlock: 1 processor waits"});
}

void the_fabric_must_be_configured() {
    tt::tt_fabric::SetFabricConfig(tt::tt_fabric::FabricConfig::DISABLED);
    const auto mesh = distributed::MeshDevice::create(
        distributed::MeshDeviceConfig(distributed::MeshShape(1, kChips)));
    expect_diagnosis([&] { program_of(*mesh, 0, {}, 0, 0); }, {"SetFabricConfig"});
}

}  // namespace

int main() {
    packets_go_along_the_line();
    misuse_is_refused();
    the_fabric_must_be_configured();
}
