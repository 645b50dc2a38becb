// Stores of kernels outside of their program's memory: each is reported at its line, and the
// message names core, kernel and the adjacent memory. Under AddressSanitizer the sanitizer detects
// them and ends the process.

#include "device/device_testing.hpp"
#include "device/sanitizer.hpp"

#ifdef TTCODEGEN_ASAN
#include <sys/wait.h>
#include <unistd.h>
#endif

using namespace device_testing;

namespace {

const CoreRange kCore{{1, 2}, {1, 2}};
constexpr const char* kWhere = "core (x=1,y=2) [NoC (19,20)], BRISC, kernel Kernel_Source_Code";

std::string kernel(const std::string& body) {
    return "#include \"api/dataflow/dataflow_api.h\"\n"
           "#include <cstring>\n"
           "struct Row { uint32_t words[16]; };\n"
           "uint32_t counted[4];\n"
           "template <typename T>\nvolatile T* at(uint32_t address) {\n"
           "return reinterpret_cast<volatile T*>(address);\n}\n"
           "void kernel_main() {\n"
           "const uint32_t data = get_write_ptr(0);\n"
           "const uint32_t next = get_write_ptr(1);\n"
           "const uint32_t size = get_local_cb_interface(0).fifo_num_pages * 2048;\n" +
           body + "\n}\n";
}

/// A program with two circular buffers of two tiles, a semaphore and one kernel.
void run_kernel(const std::string& body, const Arguments& runtime_args = {}) {
    Program program = CreateProgram();
    add_circular_buffer(program, kCore, 0, 2);
    add_circular_buffer(program, kCore, 1, 2);
    CreateSemaphore(program, kCore, 0);
    const auto writer =
        add_writer(program, kCore, kernel(body), {}, {{"cb_data", 0}, {"cb_next", 1}});
    SetRuntimeArgs(program, writer, kCore, runtime_args);
    run(std::move(program));
}

#ifdef TTCODEGEN_ASAN

/// The standard error output of `action`, which ends the process.
template <typename Action>
std::string last_words(Action action, int& status) {
    int ends[2];
    expect(pipe(ends) == 0, "there is no pipe");
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        action();
        _exit(0);
    }
    close(ends[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t length; (length = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
        text.append(buffer, static_cast<std::size_t>(length));
    }
    close(ends[0]);
    waitpid(child, &status, 0);
    return text;
}

#endif

/// Expects the kernel to fail for a store, with `part` in the message.
void expect_stray(const std::string& body, const std::string& part,
                  const Arguments& runtime_args = {},
                  std::source_location where = std::source_location::current()) {
#ifdef TTCODEGEN_ASAN
    int status = 0;
    const std::string text = last_words([&] { run_kernel(body, runtime_args); }, status);
    expect(status != 0, "the store was not found:\n" + text, where);
    for (const std::string& each : {part, std::string(kWhere), std::string("AddressSanitizer")}) {
        expect(text.find(each) != std::string::npos, "expected '" + each + "' in\n" + text, where);
    }
#else
    expect_diagnosis([&] { run_kernel(body, runtime_args); },
                     {"Kernel_Source_Code: stores", part, kWhere}, where);
#endif
}

void stores_beyond_a_circular_buffer_are_found() {
    // The next buffer does not begin directly after the first one.
    expect_stray("*at<uint32_t>(data + size) = 1;",
                 "stores 4 bytes at L1 address 0x1ad60, beyond the end of circular buffer 0 "
                 "(cb_data)");
    expect_stray("for (uint32_t i = 0; i <= size; ++i) { *at<uint8_t>(data + i) = 7; }",
                 "stores 1 bytes at L1 address 0x1ad60, beyond the end of circular buffer 0");
    expect_stray("*at<uint64_t>(data + size + 96) = 1;",
                 "stores 8 bytes at L1 address 0x1adc0, 96 bytes beyond the end of circular "
                 "buffer 0");
    expect_stray("*at<uint16_t>(next - 2) = 1;", "before circular buffer 1 (cb_next)");
    expect_stray("*at<uint32_t>(next + size) = 1;", "beyond the end of circular buffer 1");
    expect_stray("std::memset(reinterpret_cast<void*>(data + 2048), 0, size);",
                 "the end of circular buffer 0");
    expect_stray(
        "uint8_t row[64]; std::memset(row, 1, get_arg_val<uint32_t>(0));\n"
        "std::memcpy(reinterpret_cast<void*>(data + size - 32), row, "
        "get_arg_val<uint32_t>(0));",
        "the end of circular buffer 0", {64});
    expect_stray(
        "Row row{}; row.words[3] = get_arg_val<uint32_t>(0);\n"
        "*reinterpret_cast<Row*>(data + size) = row;",
        "beyond the end of circular buffer 0", {64});
}

void stores_to_other_cores_are_found() {
    expect_stray("*at<uint32_t>(data + (1 << 21)) = 1;",
                 " of core (x=2,y=2): the memory of other cores is reached over the NoC only");
    expect_stray("*at<uint32_t>(data - (8 << 21) + 4) = 1;", " of core (x=1,y=1): the memory of");
}

void stores_elsewhere_are_found() {
    expect_stray("*at<uint32_t>(get_semaphore(0) + 16) = 1;", "beyond the end of semaphore 0");
    expect_stray("*at<uint32_t>(data + 0x80000) = 1;", "beyond the end of circular buffer 1");
}

void stores_beyond_a_buffer_are_found() {
    // An allocation of the parent process is valid in the child too.
    const auto buffer = make_buffer(64 * 4096, 4096, BufferType::L1);
    const auto address = static_cast<std::uint32_t>(buffer->address());
    const std::string base =
        "const uint32_t buffer = data / (1 << 21) * (1 << 21) + "
        "get_arg_val<uint32_t>(0);\n";
    run_kernel(base + "*at<uint32_t>(buffer + 4092) = 1;", {address});
    expect_stray(base + "*at<uint32_t>(buffer - 4) = 1;", "before the L1 buffer at", {address});
#ifndef TTCODEGEN_ASAN
    // Offsets, as known to the host, are mapped while the core runs; memory that is only read is
    // not poisoned.
    run_kernel("*at<uint32_t>(get_arg_val<uint32_t>(0)) = 1;", {address});
    expect_stray("*at<uint32_t>(get_arg_val<uint32_t>(0) - 8) = 1;", "4 bytes before the L1",
                 {address});
    expect_stray("*at<uint32_t>(MEM_ZEROS_BASE) = 1;",
                 "within the zeros, which are there to be read");
#endif
}

void stores_to_what_is_there_go_through() {
    run_kernel(
        "for (uint32_t i = 0; i < size; ++i) {\n"
        "*at<uint8_t>(data + i) = 7; *at<uint8_t>(next + i) = 8;\n}\n"
        "Row row{}; row.words[get_arg_val<uint32_t>(0)] = 1;\n"
        "*reinterpret_cast<Row*>(data + size - sizeof(Row)) = row;\n"
        "std::memset(reinterpret_cast<void*>(next), 0, size);\n"
        "std::memcpy(reinterpret_cast<void*>(data), &row, get_arg_val<uint32_t>(1));\n"
        "counted[get_arg_val<uint32_t>(0)] = 2;\n"
        "*at<uint32_t>(get_semaphore(0)) = 3;\n"
        "*at<uint32_t>(get_arg_addr(0)) = 4;\n"
        "ASSERT(*at<uint32_t>(data + 12) == 1 && *at<uint32_t>(next) == 0);\n"
        "ASSERT(get_arg_val<uint32_t>(0) == 4);\n",
        {3, 64});
}

void buffers_that_fill_the_memory_stand_side_by_side() {
    Program program = CreateProgram();
    const std::uint32_t first = 300;
    const std::uint32_t all = (1499136 - 105824) / kTileBytes;
    add_circular_buffer(program, kCore, 0, first);
    add_circular_buffer(program, kCore, 1, all - first);
    add_writer(program, kCore, kernel("*at<uint32_t>(next + 64) = 1; *at<uint32_t>(data) = 1;"));
    run(std::move(program));
}

}  // namespace

int main() {
    stores_beyond_a_circular_buffer_are_found();
    stores_to_other_cores_are_found();
    stores_elsewhere_are_found();
    stores_beyond_a_buffer_are_found();
    stores_to_what_is_there_go_through();
    buffers_that_fill_the_memory_stand_side_by_side();
    return 0;
}
