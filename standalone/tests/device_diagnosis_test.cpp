// Misuses of the device: each has a kernel that commits it.

#include <chrono>
#include <filesystem>
#include <fstream>

#include "device/device_testing.hpp"

using namespace device_testing;

namespace {

const CoreRange kCore{{1, 2}, {1, 2}};
const std::string kInclude = "#include \"api/dataflow/dataflow_api.h\"\n";
constexpr const char* kWhere = "core (x=1,y=2) [NoC (19,20)]";

std::string kernel(const std::string& body) {
    return kInclude + "void kernel_main() {\n" + body + "\n}\n";
}

/// Runs one kernel with circular buffer 0 of two tiles; it must fail on line `line` with `parts`.
/// Line 3 is the first of `body`.
void expect_failure(const std::string& body, int line, std::vector<std::string> parts,
                    const Arguments& runtime_args = {},
                    std::source_location where = std::source_location::current()) {
    parts.push_back("Kernel_Source_Code:" + std::to_string(line) + ":");
    parts.push_back(kWhere);
    parts.push_back("BRISC");
    expect_diagnosis(
        [&] {
            Program program = CreateProgram();
            add_circular_buffer(program, kCore, 0, 2);
            CreateSemaphore(program, kCore, 0);
            const auto writer = add_writer(program, kCore, kernel(body), {}, {{"cb_data", 0}});
            SetRuntimeArgs(program, writer, kCore, runtime_args);
            run(std::move(program));
        },
        parts, where);
}

void deadlocks_name_who_waits_for_what() {
    const auto begin = std::chrono::steady_clock::now();
    expect_diagnosis(
        [] {
            Program program = CreateProgram();
            add_circular_buffer(program, kCore, 0, 2);
            CreateSemaphore(program, kCore, 5);
            add_reader(program, kCore, kernel("cb_wait_front(0, 1);"), {}, {{"cb_data", 0}});
            add_writer(program, kCore,
                       kernel("auto* s = reinterpret_cast<volatile tt_l1_ptr uint32_t*>"
                              "(get_semaphore(0));\n"
                              "noc_semaphore_wait(s, 7);"));
            run(std::move(program));
        },
        {"deadlock: 2 processors wait", kWhere, "NCRISC", "Kernel_Source_Code:3",
         "cb_wait_front wants 1 pages of circular buffer 0 (cb_data), 0 are there", "BRISC",
         "Kernel_Source_Code:4", "waits until semaphore 0 is 7, it is 5"});
    expect_diagnosis(
        [] {
            Program program = CreateProgram();
            add_circular_buffer(program, kCore, 3, 2);
            add_writer(program, kCore,
                       kernel("for (int i = 0; i < 3; ++i) {\n"
                              "cb_reserve_back(3, 1);\ncb_push_back(3, 1);\n}"));
            run(std::move(program));
        },
        {"deadlock: 1 processor waits", "Kernel_Source_Code:4",
         "cb_reserve_back wants 1 of the 2 pages of circular buffer 3 free, 0 are free"});
    expect_diagnosis(
        [] {
            Program program = CreateProgram();
            CreateSemaphore(program, kCore, 0);
            add_writer(program, kCore,
                       kernel("auto* s = reinterpret_cast<volatile tt_l1_ptr uint32_t*>"
                              "(get_semaphore(0));\n"
                              "while (*s != 1) {\ninvalidate_l1_cache();\n}"));
            run(std::move(program));
        },
        {"deadlock: 1 processor waits", "Kernel_Source_Code:5", "polls"});
    // Cores that are stuck alike are reported once; a core that waits for another count is reported
    // separately.
    const CoreRange cores{{0, 0}, {3, 2}};
    expect_diagnosis(
        [&] {
            Program program = CreateProgram();
            add_circular_buffer(program, cores, 0, 2);
            const auto reader =
                add_reader(program, cores, kernel("cb_wait_front(0, get_arg_val<uint32_t>(0));"));
            add_writer(program, cores,
                       kernel("cb_reserve_back(0, 2);\ncb_reserve_back(0, 3 - 1);\n"
                              "cb_push_back(0, 1);\ncb_reserve_back(0, 2);"));
            SetRuntimeArgs(program, reader, cores, {2});
            SetRuntimeArgs(program, reader, CoreCoord(1, 2), {1});
            run(std::move(program));
        },
        {"deadlock: 23 processors wait",
         "\n  cores (x=0,y=0)-(x=3,y=1), (x=0,y=2), (x=2,y=2)-(x=3,y=2), NCRISC, "
         "Kernel_Source_Code:3: cb_wait_front wants 2 pages of circular buffer 0, 1 are there",
         "\n  cores (x=0,y=0)-(x=3,y=2), BRISC, Kernel_Source_Code:6: cb_reserve_back wants 2 "
         "of the 2 pages of circular buffer 0 free, 1 are free"});
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    std::printf("deadlocks found, with compilation, in %.2f s\n", spent.count());
}

void circular_buffers_are_used_as_reserved_and_waited() {
    expect_failure("cb_reserve_back(0, 1);\ncb_push_back(0, 2);", 4,
                   {"pushes 2 pages of circular buffer 0 (cb_data), but only 1 are reserved"});
    expect_failure("cb_reserve_back(0, 3);", 3,
                   {"reserves 3 pages of circular buffer 0 (cb_data), which has 2"});
    expect_failure("cb_wait_front(0, 3);", 3, {"waits for 3 pages", "which has 2"});
    expect_failure(
        "cb_reserve_back(0, 2);\ncb_push_back(0, 2);\ncb_wait_front(0, 1);\n"
        "cb_pop_front(0, 2);",
        6, {"pops 2 pages", "cb_wait_front has waited for 1"});
    expect_failure(
        "cb_reserve_back(0, 1);\ncb_push_back(0, 1);\ncb_wait_front(0, 1);\n"
        "cb_pop_front(0, 1);\ncb_reserve_back(0, 2);\ncb_push_back(0, 2);",
        8, {"pushes 2 pages", "across its end"});
    expect_failure("cb_reserve_back(7, 1);", 3, {"circular buffer 7 was not created on this core"});
    expect_failure("cb_reserve_back(40, 1);", 3, {"there is no circular buffer 40"});
    expect_diagnosis(
        [] {
            Program program = CreateProgram();
            add_circular_buffer(program, kCore, 0, 4);
            const std::string source = kernel("cb_reserve_back(0, 1);\ncb_push_back(0, 1);");
            add_reader(program, kCore, source);
            add_writer(program, kCore, source);
            run(std::move(program));
        },
        {"Kernel_Source_Code:4", "which another processor has done before"});
}

void memory_that_nobody_wrote_is_not_read() {
    expect_failure(
        "cb_reserve_back(0, 1);\n"
        "const uint64_t other = get_noc_addr(19, 20, get_write_ptr(0) + 2048);\n"
        "noc_async_write(get_write_ptr(0), other, 64);",
        5, {"sends 64 bytes from", "circular buffer 0", "nobody wrote"});
    const auto buffer = make_buffer(4 * kTileBytes, kTileBytes);
    const auto address = static_cast<std::uint32_t>(buffer->address());
    expect_failure(
        "cb_reserve_back(0, 1);\n"
        "const InterleavedAddrGen<true> s = {.bank_base_address = "
        "get_arg_val<uint32_t>(0), .page_size = 2048};\n"
        "noc_async_read(s.get_noc_addr(1), get_write_ptr(0), 2048);\n"
        "noc_async_read_barrier();",
        5, {"reads 2048 bytes of DRAM", "never written"}, {address});
    expect_diagnosis([&] { read(buffer); }, {"The host reads byte 0 of page 0", "nobody wrote"});
}

void addresses_must_lead_to_memory_of_the_program() {
    const auto buffer = make_counting(16 * kTileBytes, kTileBytes);
    const auto address = static_cast<std::uint32_t>(buffer->address());
    const std::string read_page =
        "const InterleavedAddrGen<true> s = {.bank_base_address = get_arg_val<uint32_t>(0), "
        ".page_size = 2048};\n";
    expect_failure(read_page + "noc_async_read(s.get_noc_addr(0) + 16, get_write_ptr(0), 64);", 4,
                   {"they must be equal modulo 32"}, {address});
    expect_failure(
        read_page + "noc_async_read(s.get_noc_addr(0) + 64 * 2048, get_write_ptr(0), 64);", 4,
        {"of DRAM bank", "they are not within a buffer"}, {address});
    expect_failure(read_page + "noc_async_read(s.get_noc_addr(400), get_write_ptr(0), 64);", 4,
                   {"they are not within a buffer"}, {address});
    expect_failure(read_page + "noc_async_read(s.get_noc_addr(0), get_write_ptr(0) + 4096, 64);", 4,
                   {"they are not within a circular buffer, an L1 buffer or the semaphores"},
                   {address});
    expect_failure("noc_async_read(get_noc_addr(3, 4, 0x20000), get_write_ptr(0), 64);", 3,
                   {"neither a worker core nor DRAM at NoC coordinates (3,4)"});
    expect_failure("noc_async_read(get_noc_addr(18, 18, 0x60000), get_write_ptr(0), 64);", 3,
                   {"reads 64 bytes at L1 address 0x60000 of core (x=0,y=0)"});
    expect_failure(
        "noc_async_read(get_noc_addr(19, 20, get_write_ptr(0) + 2048), "
        "get_write_ptr(0), 0);",
        3, {"transfers 0 bytes"});
    expect_failure("noc_semaphore_inc(get_noc_addr(18, 18, get_semaphore(0)), 1);", 3,
                   {"of core (x=0,y=0)", "semaphores of that core"});
}

void transfers_need_their_barriers() {
    const auto buffer = make_counting(16 * kTileBytes, kTileBytes);
    const auto address = static_cast<std::uint32_t>(buffer->address());
    const std::string start =
        "const InterleavedAddrGen<true> s = {.bank_base_address = get_arg_val<uint32_t>(0), "
        ".page_size = 2048};\ncb_reserve_back(0, 1);\n"
        "noc_async_read_tile(3, s, get_write_ptr(0));\n";
    expect_failure(
        start + "cb_push_back(0, 1);", 6,
        {"the asynchronous read of line 5 has not filled yet", "noc_async_read_barrier is missing"},
        {address});
    expect_failure(start, 5, {"the kernel ends while this asynchronous read is in flight"},
                   {address});
    expect_failure(start + "noc_async_write_tile(4, s, get_write_ptr(0));", 6,
                   {"a read has not brought yet"}, {address});
    const std::string write =
        start +
        "noc_async_read_barrier();\ncb_push_back(0, 1);\n"
        "cb_wait_front(0, 1);\nnoc_async_write_tile(4, s, get_read_ptr(0));\n";
    expect_failure(write + "cb_pop_front(0, 1);", 10,
                   {"the asynchronous write of line 9 may still be sending",
                    "noc_async_write_barrier or noc_async_writes_flushed is missing"},
                   {address});
    expect_failure(write + "noc_async_read_tile(5, s, get_read_ptr(0));", 10,
                   {"reads into memory that the asynchronous write of line 9 may still be sending"},
                   {address});
    expect_failure(write, 9, {"the kernel ends while this asynchronous write"}, {address});
    expect_failure("noc_semaphore_inc(get_noc_addr(get_semaphore(0)), 1);", 3,
                   {"the kernel ends while this increment is in flight",
                    "noc_async_atomic_barrier is missing"});
}

void multicasts_say_whom_they_reach() {
    const std::string prepare =
        "noc_async_read(get_noc_addr(MEM_ZEROS_BASE), get_write_ptr(0), 64);\n"
        "noc_async_read_barrier();\n";
    expect_failure(prepare +
                       "noc_async_write_multicast(get_write_ptr(0), get_noc_multicast_addr("
                       "19, 20, 19, 20, get_write_ptr(0)), 64, 1);",
                   5, {"with the sender in it", "_loopback_src"});
    expect_failure(prepare +
                       "noc_async_write_multicast_loopback_src(get_write_ptr(0), "
                       "get_noc_multicast_addr(19, 20, 19, 20, get_write_ptr(0)), 64, 2);",
                   5, {"a rectangle of 1 cores, but says that there are 2"});
    // Writers run on NoC 1, which takes the larger coordinates first.
    expect_failure(prepare +
                       "noc_async_write_multicast(get_write_ptr(0), get_noc_multicast_addr("
                       "19, 20, 20, 21, get_write_ptr(0)), 64, 4);",
                   5, {"the wrong way round for NoC 1"});
}

void senders_know_that_there_is_room() {
    const CoreRange cores({1, 2}, {2, 2});
    expect_diagnosis(
        [&] {
            Program program = CreateProgram();
            add_circular_buffer(program, cores, 0, 1);
            CreateSemaphore(program, cores, 0);
            add_reader(program, {{2, 2}, {2, 2}},
                       kernel("cb_reserve_back(0, 1);\ncb_push_back(0, 1);\n"
                              "noc_semaphore_inc(get_noc_addr(19, 20, get_semaphore(0)), 1);\n"
                              "noc_async_atomic_barrier();"));
            add_writer(
                program, kCore,
                kernel("noc_semaphore_wait(reinterpret_cast<volatile tt_l1_ptr uint32_t*>"
                       "(get_semaphore(0)), 1);\n"
                       "noc_async_read(get_noc_addr(MEM_ZEROS_BASE), get_write_ptr(0), 64);\n"
                       "noc_async_read_barrier();\n"
                       "noc_async_write(get_write_ptr(0), get_noc_addr(20, 20, "
                       "get_write_ptr(0)), 64);"),
                {}, {{"cb_data", 0}});
            run(std::move(program));
        },
        {"Kernel_Source_Code:6", kWhere,
         "writes to page 0 of circular buffer 0 (cb_data) of core (x=2,y=2), which that core has "
         "not popped yet"});
    expect_failure(
        "auto* s = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(get_semaphore(0));\n"
        "noc_semaphore_set_remote(get_semaphore(0), get_noc_addr(19, 20, get_semaphore(0)));\n"
        "noc_semaphore_set(s, 1);",
        5, {"stores to memory that the asynchronous write of line 4 may still be sending"});
}

void arguments_and_semaphores_must_exist() {
    expect_failure("get_arg_val<uint32_t>(2);", 3,
                   {"unique run-time argument 2 is read, but 2 were set"}, {1, 2});
    expect_failure("get_common_arg_val<uint32_t>(0);", 3,
                   {"common run-time argument 0 is read, but 0 were set"});
    expect_failure("get_semaphore(3);", 3, {"semaphore 3 was not created on this core"});
    expect_failure("noc_semaphore_set(reinterpret_cast<volatile tt_l1_ptr uint32_t*>(0x50000), 1);",
                   3, {"writes 4 bytes at L1 address 0x50000"});
    expect_failure("ASSERT(NUM_DRAM_BANKS == 11);", 3, {"ASSERT(NUM_DRAM_BANKS == 11)"});
}

void programs_must_fit_the_memory() {
    expect_diagnosis(
        [] {
            Program program = CreateProgram();
            add_circular_buffer(program, kCore, 0, 400);
            add_circular_buffer(program, kCore, 1, 400);
            run(std::move(program));
        },
        {"Statically allocated circular buffers on core range", "(x=1,y=2)", "grow to 1744224 B",
         "beyond max L1 size of 1499136 B"});
    expect_diagnosis(
        [] {
            const auto buffer = make_counting(64 * 512 * 1024, 512 * 1024, BufferType::L1);
            Program program = CreateProgram();
            add_circular_buffer(program, kCore, 0, 500);
            run(std::move(program));
        },
        {"clash with L1 buffers", "allocated at 974848", "ends at 1129824"});
    expect_diagnosis([] { make_buffer(64 * 1400 * 1024, 1400 * 1024, BufferType::L1); },
                     {"Out of Memory", "1433600 B"});
    expect_diagnosis([] { make_buffer(3000, 2048); }, {"page size 2048"});
}

void faults_of_kernels_are_reported() {
    const auto expect_fault = [](const std::string& body, const std::string& part) {
        expect_diagnosis(
            [&] {
                Program program = CreateProgram();
                add_circular_buffer(program, kCore, 0, 2);
                const auto writer = add_writer(program, kCore, kernel(body));
                SetRuntimeArgs(program, writer, kCore, {0});
                run(std::move(program));
            },
            {part, kWhere, "Kernel_Source_Code"});
    };
    expect_fault("*reinterpret_cast<volatile uint32_t*>(0x70000000u) = 1;",
                 "accesses address 0x70000000");
    expect_fault("volatile uint32_t zero = get_arg_val<uint32_t>(0); zero = 100 / zero;",
                 "divides an integer by zero");
    expect_fault("volatile char big[400000]; big[0] = 1; big[200000] = 2;", "its stack is full");
    setenv("TTCODEGEN_KERNEL_SECONDS", "1", 1);
    expect_fault("volatile uint32_t i = 0; while (true) { i = i + 1; }",
                 "without calling the kernel API");
    unsetenv("TTCODEGEN_KERNEL_SECONDS");
}

void kernels_must_be_there_and_compile() {
    expect_diagnosis(
        [] {
            Program program = CreateProgram();
            CreateKernel(program, "kernels/nowhere.cpp", kCore, WriterDataMovementConfig());
        },
        {"Kernel file kernels/nowhere.cpp doesn't exist", "/kernels/nowhere.cpp"});
    const auto folder = std::filesystem::temp_directory_path() / "ttcodegen_device_diagnosis";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "wrong.cpp") << kernel("cb_reserve_bak(0, 1);");
    setenv("TT_METAL_KERNEL_PATH", folder.c_str(), 1);
    expect_diagnosis(
        [] {
            Program program = CreateProgram();
            CreateKernel(program, "wrong.cpp", kCore, WriterDataMovementConfig());
            run(std::move(program));
        },
        {"Kernel wrong.cpp does not compile", "wrong.cpp:3", "cb_reserve_bak"});
    unsetenv("TT_METAL_KERNEL_PATH");
    std::filesystem::remove_all(folder);
    expect_diagnosis(
        [] {
            Program program = CreateProgram();
            add_writer(program, kCore, kernel("constexpr auto x = get_compile_time_arg_val(1);"),
                       {7});
            run(std::move(program));
        },
        {"does not compile", "fewer compile-time arguments"});
}

/// Precompiled headers provide a kernel with nothing that it does not include.
void kernels_include_the_algorithms_that_they_use() {
    const std::string body =
        "uint32_t pair[2] = {2, 1};\nstd::sort(pair, pair + 2);\nASSERT(pair[0] == 1);";
    const auto run_with = [](const std::string& text) {
        Program program = CreateProgram();
        add_writer(program, kCore, text);
        run(std::move(program));
    };
    expect_diagnosis([&] { run_with(kernel(body)); }, {"does not compile", "sort"});
    run_with("#include <algorithm>\n" + kernel(body));
}

void programs_are_put_together_as_the_release_allows() {
    expect_diagnosis(
        [] {
            Program program = CreateProgram();
            add_writer(program, kCore, kernel(""));
            add_writer(program, kCore, kernel(""));
        },
        {"Core Overlap"});
    expect_diagnosis(
        [] {
            Program program = CreateProgram();
            add_writer(program, kCore, kernel(""));
            CreateKernelFromString(program, kernel(""), kCore,
                                   DataMovementConfig{DataMovementProcessor::RISCV_1,
                                                      NOC::NOC_1,
                                                      NOC_MODE::DM_DEDICATED_NOC,
                                                      {},
                                                      {},
                                                      {}});
        },
        {"Illegal NOC usage", "cannot use the same NOC"});
    expect_diagnosis(
        [] {
            Program program = CreateProgram();
            add_circular_buffer(program, {{0, 0}, {8, 0}}, 0, 2);
        },
        {"exceeds the device's grid of 8x8 cores"});
    expect_diagnosis(
        [] { CircularBufferConfig(4096, {{0, tt::DataFormat::Float16_b}}).set_page_size(0, 3000); },
        {"must be divisible by page size 3000 B"});
    expect_diagnosis(
        [] {
            Program program = CreateProgram();
            const auto writer = add_writer(program, kCore, kernel(""));
            SetRuntimeArgs(program, writer, CoreCoord{0, 0}, {1});
        },
        {"is not placed on it"});
}

}  // namespace

int main() {
    deadlocks_name_who_waits_for_what();
    circular_buffers_are_used_as_reserved_and_waited();
    memory_that_nobody_wrote_is_not_read();
    addresses_must_lead_to_memory_of_the_program();
    transfers_need_their_barriers();
    multicasts_say_whom_they_reach();
    senders_know_that_there_is_room();
    arguments_and_semaphores_must_exist();
    programs_must_fit_the_memory();
    faults_of_kernels_are_reported();
    kernels_must_be_there_and_compile();
    kernels_include_the_algorithms_that_they_use();
    programs_are_put_together_as_the_release_allows();
    return 0;
}
