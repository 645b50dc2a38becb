// Features of data movement kernels, each in a program whose result the host knows.

#include <sys/resource.h>

#include "device/device_testing.hpp"

using namespace device_testing;

namespace {

const std::string kInclude = "#include \"api/dataflow/dataflow_api.h\"\n";

std::uint32_t address_of(const std::shared_ptr<distributed::MeshBuffer>& buffer) {
    return static_cast<std::uint32_t>(buffer->address());
}

/// Core 0 reads a tile and sends it; all cores write their tile.
const std::string kMulticastKernel = kInclude + R"(
void kernel_main() {
    constexpr auto args = TensorAccessorArgs<0>();
    const auto ready = get_semaphore(get_compile_time_arg_val(2));
    const auto sent = get_semaphore(get_compile_time_arg_val(3));
    auto* ready_ptr = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(ready);
    auto* sent_ptr = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(sent);
    const uint32_t x0 = get_arg_val<uint32_t>(2), y0 = get_arg_val<uint32_t>(3);
    const uint32_t x1 = get_arg_val<uint32_t>(4), y1 = get_arg_val<uint32_t>(5);
    const uint32_t index = get_arg_val<uint32_t>(6);
    cb_reserve_back(0, 1);
    const uint32_t tile = get_write_ptr(0);
    if (index == 0) {
        const auto source = TensorAccessor(args, get_arg_val<uint32_t>(0), get_tile_size(0));
        noc_async_read_tile(0, source, tile);
        noc_async_read_barrier();
        noc_semaphore_wait(ready_ptr, 11);
        noc_semaphore_set(ready_ptr, 0);
        noc_async_write_multicast_loopback_src(
            tile, get_noc_multicast_addr(x0, y0, x1, y1, tile), get_tile_size(0), 12);
        noc_semaphore_set(sent_ptr, 1);
        noc_semaphore_set_multicast_loopback_src(
            sent, get_noc_multicast_addr(x0, y0, x1, y1, sent), 12);
        noc_async_write_barrier();
    } else {
        noc_semaphore_inc(get_noc_addr(x0, y0, ready), 1);
        noc_async_atomic_barrier();
        noc_semaphore_wait(sent_ptr, 1);
    }
    cb_push_back(0, 1);
    const auto target = TensorAccessor(args, get_arg_val<uint32_t>(1), get_tile_size(0));
    cb_wait_front(0, 1);
    noc_async_write_tile(index, target, get_read_ptr(0));
    noc_async_write_barrier();
    cb_pop_front(0, 1);
})";

/// One core multicasts a tile to all others, which write it to DRAM: semaphores both ways.
void multicasts_reach_all_cores() {
    const CoreRange cores({0, 0}, {3, 2});
    const auto source = make_counting(kTileBytes, kTileBytes);
    const auto target = make_buffer(12 * kTileBytes, kTileBytes);
    Program program = CreateProgram();
    add_circular_buffer(program, cores, 0, 1);
    const auto ready = CreateSemaphore(program, cores, 0);
    const auto sent = CreateSemaphore(program, cores, 0);
    const auto first = device().worker_core_from_logical_core({0, 0});
    const auto last = device().worker_core_from_logical_core({3, 2});
    Arguments compile_args;
    TensorAccessorArgs(*source).append_to(compile_args);
    compile_args.insert(compile_args.end(), {ready, sent});
    const auto reader = add_reader(program, cores, kMulticastKernel, compile_args);
    for (std::uint32_t i = 0; i < 12; ++i) {
        SetRuntimeArgs(program, reader, CoreCoord{i % 4, i / 4},
                       {address_of(source), address_of(target), static_cast<std::uint32_t>(first.x),
                        static_cast<std::uint32_t>(first.y), static_cast<std::uint32_t>(last.x),
                        static_cast<std::uint32_t>(last.y), i});
    }
    const Program done = run(std::move(program));
    const Arguments tile = read(source);
    const Arguments all = read(target);
    for (std::size_t i = 0; i < all.size(); ++i) {
        expect(all[i] == tile[i % tile.size()], "each core has the tile");
    }
    const auto& total = ttcodegen::device::program_report(done).total;
    expect(total.noc_written_bytes == 12 * kTileBytes * 2 + 12 * 4, "each receiver counts");
}

/// The host knows an L1 buffer by its offset only, and kernels may dereference that.
void offsets_in_l1_are_pointers() {
    const CoreRange cores({0, 0}, {7, 7});
    const auto words = make_counting(64 * 64, 64, BufferType::L1, 100);
    Program program = CreateProgram();
    CreateSemaphore(program, cores, 0);
    const auto writer = add_writer(program, cores, kInclude + R"(
void kernel_main() {
    auto* words = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(get_common_arg_val<uint32_t>(0));
    uint32_t sum = 0;
    for (uint32_t i = 1; i < 16; ++i) {
        sum += words[i];
        noc_semaphore_set(reinterpret_cast<volatile tt_l1_ptr uint32_t*>(get_semaphore(0)), i);
        noc_semaphore_wait_min(reinterpret_cast<volatile tt_l1_ptr uint32_t*>(get_semaphore(0)), i);
    }
    words[0] = sum;
})");
    SetCommonRuntimeArgs(program, writer, {address_of(words)});
    run(std::move(program));
    const Arguments result = read(words);
    for (std::uint32_t core = 0; core < 64; ++core) {
        std::uint32_t sum = 0;
        for (std::uint32_t i = 1; i < 16; ++i) {
            sum += 100 + core * 16 + i;
        }
        expect(result[core * 16] == sum, "each core has summed its own page");
    }
}

/// An accessor of a sharded buffer.
void accessors_know_shards() {
    const CoreRangeSet cores(CoreRange({0, 0}, {1, 1}));
    // 6x4 pages in shards of 2x3 pages on four cores: six shards, the right ones half empty.
    const BufferDistributionSpec spec(Shape({6, 4}), Shape({2, 3}), cores,
                                      ShardOrientation::ROW_MAJOR);
    const distributed::DeviceLocalBufferConfig local{
        .page_size = 64, .buffer_type = BufferType::L1, .sharding_args = spec};
    auto sharded = distributed::MeshBuffer::create(
        distributed::ReplicatedBufferConfig{.size = 24 * 64}, local, &device());
    Arguments words(24 * 16);
    for (std::uint32_t i = 0; i < words.size(); ++i) {
        words[i] = 7 * i;
    }
    distributed::EnqueueWriteMeshBuffer(queue(), sharded, words, true);
    expect(read(sharded) == words, "the host reads what it wrote");

    const auto target = make_buffer(24 * 64, 64);
    const CoreRange reading({5, 5}, {5, 5});
    Program program = CreateProgram();
    add_circular_buffer(program, reading, 0, 1, 64);
    Arguments compile_args;
    TensorAccessorArgs(*sharded).append_to(compile_args);
    TensorAccessorArgs(*target).append_to(compile_args);
    const auto reader = add_reader(program, reading, kInclude + R"(
void kernel_main() {
    constexpr auto from_args = TensorAccessorArgs<0>();
    constexpr auto to_args = TensorAccessorArgs<from_args.next_compile_time_args_offset()>();
    static_assert(from_args.is_sharded && !from_args.is_dram && to_args.is_dram);
    const auto from = TensorAccessor(from_args, get_arg_val<uint32_t>(0), 64);
    const auto to = TensorAccessor(to_args, get_arg_val<uint32_t>(1), 64);
    for (uint32_t page = 0; page < 24; ++page) {
        noc_async_read_page(page, from, get_write_ptr(0));
        noc_async_read_barrier();
        noc_async_write_page(page, to, get_write_ptr(0));
        noc_async_writes_flushed();
    }
})",
                                   compile_args);
    SetRuntimeArgs(program, reader, reading, {address_of(sharded), address_of(target)});
    run(std::move(program));
    expect(read(target) == words, "the kernel finds each page");
}

/// A circular buffer in an L1 buffer, whose content is pushed in place.
void circular_buffers_may_lie_in_buffers() {
    const CoreRangeSet cores(CoreRange({2, 0}, {3, 0}));
    const ShardSpecBuffer shards(cores, {32, 32}, ShardOrientation::ROW_MAJOR, {32, 32}, {2, 1});
    const distributed::DeviceLocalBufferConfig local{
        .page_size = kTileBytes,
        .buffer_type = BufferType::L1,
        .sharding_args = BufferShardingArgs(shards, TensorMemoryLayout::HEIGHT_SHARDED)};
    auto sharded = distributed::MeshBuffer::create(
        distributed::ReplicatedBufferConfig{.size = 2 * kTileBytes}, local, &device());
    Arguments words(2 * kTileBytes / 4);
    for (std::uint32_t i = 0; i < words.size(); ++i) {
        words[i] = i;
    }
    distributed::EnqueueWriteMeshBuffer(queue(), sharded, words, true);
    const auto target = make_buffer(2 * kTileBytes, kTileBytes);
    Program program = CreateProgram();
    CreateCircularBuffer(program, cores,
                         CircularBufferConfig(kTileBytes, {{4, tt::DataFormat::Float16_b}})
                             .set_page_size(4, kTileBytes)
                             .set_globally_allocated_address(*sharded->get_reference_buffer()));
    add_reader(program, cores.bounding_box(),
               kInclude + "void kernel_main() { cb_push_back(4, 1); }");
    Arguments compile_args;
    TensorAccessorArgs(*target).append_to(compile_args);
    const auto writer = add_writer(program, cores.bounding_box(), kInclude + R"(
void kernel_main() {
    constexpr auto args = TensorAccessorArgs<0>();
    const auto target = TensorAccessor(args, get_arg_val<uint32_t>(0), get_tile_size(4));
    cb_wait_front(4, 1);
    noc_async_write_tile(get_absolute_logical_x() - 2, target, get_read_ptr(4));
    noc_async_write_barrier();
    cb_pop_front(4, 1);
})",
                                   compile_args);
    SetRuntimeArgs(program, writer, cores, {address_of(target)});
    run(std::move(program));
    expect(read(target) == words, "both shards arrive");
    expect(read(sharded) == words, "and stay");
}

/// Repeated runs of a program with changed arguments.
void arguments_change_between_runs() {
    const CoreRange core({0, 0}, {0, 0});
    const auto target = make_counting(64, 64);
    Program program = CreateProgram();
    add_circular_buffer(program, core, 0, 1, 64);
    Arguments compile_args;
    TensorAccessorArgs(*target).append_to(compile_args);
    const auto writer = add_writer(program, core, kInclude + R"(
void kernel_main() {
    constexpr auto args = TensorAccessorArgs<0>();
    const auto target = TensorAccessor(args, get_arg_val<uint32_t>(0), 64);
    auto* words = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(get_write_ptr(0));
    for (uint32_t i = 0; i < 16; ++i) {
        words[i] = get_arg_val<uint32_t>(1) + my_x[0];
    }
    noc_async_write_page(0, target, get_write_ptr(0));
    noc_async_write_barrier();
})",
                                   compile_args);
    SetRuntimeArgs(program, writer, core, {address_of(target), 1});
    program = run(std::move(program));
    expect(read(target)[15] == 19, "first run");
    GetRuntimeArgs(program, writer, CoreCoord{0, 0})[1] = 5;
    program = run(std::move(program));
    expect(read(target)[15] == 23, "second run");
    expect(ttcodegen::device::program_report(program).runs == 2, "runs are counted");
}

/// Transfers with preset addresses and transaction ids.
void transfers_use_state_and_transactions() {
    const CoreRange core({4, 4}, {4, 4});
    const auto source = make_counting(kTileBytes, kTileBytes);
    const auto target = make_buffer(kTileBytes, kTileBytes);
    Program program = CreateProgram();
    add_circular_buffer(program, core, 0, 1);
    const auto reader = add_reader(program, core, kInclude + R"(
void kernel_main() {
    const InterleavedAddrGenFast<true> from = {
        .bank_base_address = get_arg_val<uint32_t>(0), .page_size = 2048,
        .data_format = DataFormat::Float16_b};
    const InterleavedAddrGenFast<true> to = {
        .bank_base_address = get_arg_val<uint32_t>(1), .page_size = 2048,
        .data_format = DataFormat::Float16_b};
    const uint64_t first = get_noc_addr(0, from);
    noc_async_read_one_packet_set_state(first, 512);
    for (uint32_t i = 0; i < 2; ++i) {
        noc_async_read_one_packet_with_state(static_cast<uint32_t>(first) + 512 * i,
                                             get_write_ptr(0) + 512 * i);
    }
    noc_async_read_barrier();
    noc_async_read_set_trid(3);
    noc_async_read(first + 1024, get_write_ptr(0) + 1024, 1024);
    noc_async_read_barrier_with_trid(3);
    noc_async_read_set_trid(0);
    const uint64_t out = get_noc_addr(0, to);
    noc_async_write_one_packet_set_state(out, 1024);
    noc_async_write_one_packet_with_state(get_write_ptr(0), static_cast<uint32_t>(out));
    noc_async_write_barrier();
    noc_async_write_one_packet_with_trid(get_write_ptr(0) + 1024, out + 1024, 1024, 5);
    noc_async_write_barrier_with_trid(5);
})");
    SetRuntimeArgs(program, reader, core, {address_of(source), address_of(target)});
    run(std::move(program));
    expect(read(source) == read(target), "all parts arrive");
}

/// The same with objects: circular buffers, the NoC, semaphores.
void objects_transfer_as_functions_do() {
    const CoreRange cores({0, 0}, {1, 0});
    const auto source = make_counting(2 * kTileBytes, kTileBytes);
    const auto target = make_buffer(2 * kTileBytes, kTileBytes);
    Program program = CreateProgram();
    add_circular_buffer(program, cores, 0, 2);
    CreateSemaphore(program, cores, 0);
    Arguments compile_args;
    TensorAccessorArgs(*source).append_to(compile_args);
    const auto reader = add_reader(program, cores, R"(
#include "experimental/circular_buffer.h"
#include "experimental/endpoints.h"
#include "experimental/noc_semaphore.h"
#include "experimental/tensor.h"
void kernel_main() {
    constexpr auto args = TensorAccessorArgs<0>();
    const auto source = TensorAccessor(args, get_arg_val<uint32_t>(0));
    const auto target = TensorAccessor(args, get_arg_val<uint32_t>(1));
    experimental::Noc noc;
    experimental::CircularBuffer cb(0);
    experimental::Semaphore<> arrived(0);
    const uint32_t bytes = cb.get_tile_size();
    // The first core reads both tiles and sends one of them to the second core.
    if (get_absolute_logical_x() == 0) {
        cb.reserve_back(2);
        for (uint32_t i = 0; i < 2; ++i) {
            noc.async_read(source, cb, bytes, {.page_id = i}, {.offset_bytes = i * bytes});
        }
        noc.async_read_barrier();
        cb.push_back(2);
        cb.wait_front(2);
        noc.async_write(experimental::use<experimental::CircularBuffer::AddrSelector::READ_PTR>(cb),
                        experimental::UnicastEndpoint{}, bytes, {.offset_bytes = bytes},
                        {.noc_x = 19, .noc_y = 18, .addr = cb.get_read_ptr()});
        arrived.up(noc, 19, 18, 1);
        noc.async_atomic_barrier();
    } else {
        arrived.wait(1);
        arrived.down(1);
        cb.reserve_back(1);
        cb.push_back(1);
        cb.wait_front(1);
    }
    noc.async_write(cb, target, bytes, {}, {.page_id = get_absolute_logical_x()});
    noc.async_write_barrier();
    cb.pop_front(1);
})",
                                   compile_args);
    SetRuntimeArgs(program, reader, cores, {address_of(source), address_of(target)});
    run(std::move(program));
    expect(read(source) == read(target), "both tiles arrive");
}

/// Variables of a kernel belong to a processor, even if others run the same kernel.
[[maybe_unused]] void variables_belong_to_processors() {
    const CoreRange cores({0, 0}, {3, 0});
    const auto words = make_counting(64 * 16, 16, BufferType::L1);
    Program program = CreateProgram();
    CreateSemaphore(program, cores, 0);
    const auto writer = add_writer(program, cores, kInclude + R"(
uint32_t calls = 10;
uint32_t count() {
    static uint32_t counted = 0;
    return ++counted;
}
void kernel_main() {
    for (int i = 0; i < 5; ++i) {
        calls += count();
        invalidate_l1_cache();
    }
    reinterpret_cast<volatile tt_l1_ptr uint32_t*>(get_common_arg_val<uint32_t>(0))[0] = calls;
})");
    SetCommonRuntimeArgs(program, writer, {address_of(words)});
    for (int run_index = 0; run_index < 2; ++run_index) {
        program = run(std::move(program));
        for (std::uint32_t core = 0; core < 4; ++core) {
            expect(read(words)[4 * core] == 25, "counted alone and from the start");
        }
    }
}

#ifndef __SANITIZE_ADDRESS__  // which has larger mappings of its own
/// Supervisors of programs set such limits; the DRAM of a chip is larger, and little of it is used.
void dram_may_exceed_the_limit_on_data() {
    rlimit limit{};
    expect(getrlimit(RLIMIT_DATA, &limit) == 0, "there is a limit");
    limit.rlim_cur = std::min(limit.rlim_max, rlim_t{1} << 30U);
    expect(setrlimit(RLIMIT_DATA, &limit) == 0, "the limit is set");
    expect(read(make_counting(64, 16))[15] == 15, "the device has memory");
}
#endif

}  // namespace

int main() {
#ifndef __SANITIZE_ADDRESS__
    dram_may_exceed_the_limit_on_data();
#endif
    multicasts_reach_all_cores();
    offsets_in_l1_are_pointers();
    accessors_know_shards();
    circular_buffers_may_lie_in_buffers();
    arguments_change_between_runs();
    transfers_use_state_and_transactions();
    objects_transfer_as_functions_do();
#ifndef __SANITIZE_ADDRESS__  // which surrounds variables with memory that must not be touched
    variables_belong_to_processors();
#endif
    return 0;
}
