#pragma once

// Common parts of the device tests: a device, buffers with data, programs of one or two kernels,
// and expected diagnostics. A failed expectation prints its line and ends the test program.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <source_location>
#include <string>
#include <vector>

#include "tt-metalium/distributed.hpp"
#include "tt-metalium/host_api.hpp"
#include "tt-metalium/tensor_accessor_args.hpp"
#include "ttcodegen/device/report.hpp"

namespace device_testing {

using namespace tt::tt_metal;

using Arguments = std::vector<std::uint32_t>;
using Names = std::unordered_map<std::string, std::uint32_t>;

inline constexpr std::uint32_t kTileBytes = 2048;  // of bfloat16

[[noreturn]] inline void fail(const std::string& message, std::source_location where) {
    std::fprintf(stderr, "%s:%u: %s\n", where.file_name(), static_cast<unsigned>(where.line()),
                 message.c_str());
    std::exit(1);
}

inline void expect(bool condition, const std::string& message,
                   std::source_location where = std::source_location::current()) {
    if (!condition) {
        fail(message, where);
    }
}

inline distributed::MeshDevice& device() {
    static const auto opened = distributed::MeshDevice::create_unit_mesh(0);
    return *opened;
}

inline distributed::MeshCommandQueue& queue() { return device().mesh_command_queue(); }

inline std::shared_ptr<distributed::MeshBuffer> make_buffer(std::uint32_t bytes,
                                                            std::uint32_t page_size,
                                                            BufferType type = BufferType::DRAM) {
    const distributed::DeviceLocalBufferConfig local{.page_size = page_size, .buffer_type = type};
    return distributed::MeshBuffer::create(distributed::ReplicatedBufferConfig{.size = bytes},
                                           local, &device());
}

/// A buffer of words that count up from `first`.
inline std::shared_ptr<distributed::MeshBuffer> make_counting(std::uint32_t bytes,
                                                              std::uint32_t page_size,
                                                              BufferType type = BufferType::DRAM,
                                                              std::uint32_t first = 0) {
    auto buffer = make_buffer(bytes, page_size, type);
    Arguments words(bytes / 4);
    for (std::uint32_t& word : words) {
        word = first++;
    }
    distributed::EnqueueWriteMeshBuffer(queue(), buffer, words, true);
    return buffer;
}

inline Arguments read(std::shared_ptr<distributed::MeshBuffer> buffer) {
    Arguments words;
    distributed::EnqueueReadMeshBuffer(queue(), words, buffer, true);
    return words;
}

inline CBHandle add_circular_buffer(Program& program, const CoreRange& cores, std::uint8_t index,
                                    std::uint32_t pages, std::uint32_t page_size = kTileBytes) {
    return CreateCircularBuffer(
        program, cores,
        CircularBufferConfig(pages * page_size, {{index, tt::DataFormat::Float16_b}})
            .set_page_size(index, page_size));
}

inline KernelHandle add_reader(Program& program, const CoreRange& cores, const std::string& source,
                               const Arguments& compile_args = {}, const Names& names = {}) {
    return CreateKernelFromString(program, source, cores,
                                  ReaderDataMovementConfig(compile_args, {}, names));
}

inline KernelHandle add_writer(Program& program, const CoreRange& cores, const std::string& source,
                               const Arguments& compile_args = {}, const Names& names = {}) {
    return CreateKernelFromString(program, source, cores,
                                  WriterDataMovementConfig(compile_args, {}, names));
}

/// Runs a program and returns it with its report.
inline Program run(Program program) {
    distributed::MeshWorkload workload;
    const distributed::MeshCoordinateRange all(device().shape());
    workload.add_program(all, std::move(program));
    distributed::EnqueueMeshWorkload(queue(), workload, false);
    distributed::Finish(queue());
    return std::move(workload.get_programs().begin()->second);
}

/// Calls `action` and expects an exception with each of `parts` in its message.
template <typename Action>
void expect_diagnosis(Action action, const std::vector<std::string>& parts,
                      std::source_location where = std::source_location::current()) {
    try {
        action();
    } catch (const std::exception& error) {
        const std::string message = error.what();
        for (const std::string& part : parts) {
            if (message.find(part) == std::string::npos) {
                fail("expected '" + part + "' in\n" + message, where);
            }
        }
        return;
    }
    fail("expected a diagnosis with '" + parts.front() + "'", where);
}

}  // namespace device_testing
