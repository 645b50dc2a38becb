// Traces of device programs: replays run the captured programs with the captured arguments.

#include "device/device_testing.hpp"
#include "tt-metalium/mesh_command_queue.hpp"

namespace {

using namespace device_testing;
using distributed::MeshCoordinate;
using distributed::MeshCoordinateRange;
using distributed::MeshWorkload;

constexpr std::uint32_t kBytes = 4 * kTileBytes;

/// Adds a number to each word.
const std::string kAdd = R"(
#include "api/dataflow/dataflow_api.h"
void kernel_main() {
    const uint32_t from = get_arg_val<uint32_t>(0);
    const uint32_t to = get_arg_val<uint32_t>(1);
    const uint32_t number = get_arg_val<uint32_t>(2);
    const InterleavedAddrGen<true> source = {.bank_base_address = from, .page_size = 2048};
    const InterleavedAddrGen<true> target = {.bank_base_address = to, .page_size = 2048};
    for (uint32_t page = 0; page < 4; ++page) {
        cb_reserve_back(0, 1);
        noc_async_read(get_noc_addr(page, source), get_write_ptr(0), 2048);
        noc_async_read_barrier();
        volatile tt_l1_ptr uint32_t* words =
            reinterpret_cast<volatile tt_l1_ptr uint32_t*>(get_write_ptr(0));
        for (uint32_t i = 0; i < 512; ++i) {
            words[i] = words[i] + number;
        }
        noc_async_write(get_write_ptr(0), get_noc_addr(page, target), 2048);
        noc_async_write_barrier();
    }
}
)";

using Buffer = std::shared_ptr<distributed::MeshBuffer>;

/// A workload that is built once, and passed buffers and a number for each run.
class Adding {
  public:
    Adding() {
        Program program = CreateProgram();
        const CoreRange core({0, 0}, {0, 0});
        add_circular_buffer(program, core, 0, 1);
        kernel_ = add_reader(program, core, kAdd);
        workload_.add_program(MeshCoordinateRange(device().shape()), std::move(program));
    }

    void run(const Buffer& from, const Buffer& to, std::uint32_t number, bool blocking = false) {
        Program& program = workload_.get_programs().begin()->second;
        SetRuntimeArgs(program, kernel_, CoreCoord{0, 0},
                       {static_cast<std::uint32_t>(from->address()),
                        static_cast<std::uint32_t>(to->address()), number});
        EnqueueMeshWorkload(queue(), workload_, blocking);
    }

  private:
    MeshWorkload workload_;
    KernelHandle kernel_{};
};

Buffer make_empty() { return make_buffer(kBytes, kTileBytes); }

void fill(Buffer& buffer, std::uint32_t word) {
    EnqueueWriteMeshBuffer(queue(), buffer, Arguments(kBytes / 4, word));
}

std::uint32_t first_word(Buffer& buffer) {
    Arguments words;
    EnqueueReadMeshBuffer(queue(), words, buffer);
    return words[0];
}

template <typename Call>
void expect_refused(const Call& call, const std::string& text) {
    try {
        call();
    } catch (const std::exception& error) {
        expect(std::string(error.what()).find(text) != std::string::npos, error.what());
        return;
    }
    expect(false, "accepted what should be refused with: " + text);
}

void test_replays_use_captured_arguments_and_memory() {
    Adding adding;
    Buffer input = make_empty();
    fill(input, 1);
    {
        const Buffer between = make_empty();
        Buffer output = make_empty();
        adding.run(input, between, 10);
        adding.run(between, output, 100);
    }
    Buffer output;
    const auto id = device().begin_mesh_trace(0);
    {
        const Buffer between = make_empty();
        adding.run(input, between, 10);
        output = make_empty();
        adding.run(between, output, 100);
    }
    device().end_mesh_trace(0, id);
    expect_refused([&] { first_word(output); }, "wrote");
    for (const std::uint32_t word : {1U, 2U, 3U}) {
        fill(input, word);
        device().replay_mesh_trace(0, id, false);
        expect(first_word(output) == word + 110, "both programs ran, each with its own arguments");
    }
    // Later arguments of the program apply to later runs only.
    Buffer other = make_empty();
    adding.run(input, other, 1000);
    expect(first_word(other) == 1003, "the program runs as usual");
    device().replay_mesh_trace(0, id, false);
    expect(first_word(output) == 113, "the trace keeps its arguments");
    device().release_mesh_trace(id);
    expect_refused([&] { device().replay_mesh_trace(0, id, false); }, "Trace instance");
}

void test_what_a_capture_refuses() {
    Adding adding;
    Buffer input = make_empty();
    Buffer output = make_empty();
    fill(input, 1);
    const auto id = distributed::BeginTraceCapture(&device(), 0);
    expect_refused([&] { adding.run(input, output, 1); },
                   "Writes are not supported during trace capture");
    expect_refused([&] { fill(input, 2); }, "Writes are not supported during trace capture");
    expect_refused([&] { first_word(input); }, "Reads are not supported during trace capture");
    expect_refused([&] { Finish(queue()); },
                   "Event Synchronization is not supported during trace capture");
    device().end_mesh_trace(0, id);
    device().release_mesh_trace(id);
    adding.run(input, output, 1);
    const auto again = distributed::BeginTraceCapture(&device(), 0);
    expect_refused([&] { adding.run(input, output, 1, true); },
                   "Blocking is not supported when recording a trace");
    device().end_mesh_trace(0, again);
    device().release_mesh_trace(again);
}

void test_a_trace_needs_its_workloads() {
    Buffer input = make_empty();
    Buffer output = make_empty();
    fill(input, 1);
    auto adding = std::make_unique<Adding>();
    adding->run(input, output, 1);
    const auto id = device().begin_mesh_trace(0);
    adding->run(input, output, 2);
    device().end_mesh_trace(0, id);
    expect(device().get_trace_buffers_size() > 0, "the trace has a size");
    adding.reset();
    expect_refused([&] { device().replay_mesh_trace(0, id, false); }, "workload that is gone");
    device().release_mesh_trace(id);
    expect(device().get_trace_buffers_size() == 0, "released traces have none");
}

}  // namespace

int main() {
    test_replays_use_captured_arguments_and_memory();
    test_what_a_capture_refuses();
    test_a_trace_needs_its_workloads();
}
