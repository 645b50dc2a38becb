// Device programs among ttnn operations: tensors that they read and write, and
// refusals.

#include "ttnn/operations/generic/generic_op.hpp"

#include "device/device_testing.hpp"
#include "ttnn/operations/creation/creation.hpp"
#include "ttnn/operations/eltwise/unary/unary.hpp"
#include "ttnn/operations/trace.hpp"

namespace {

namespace trace = ttnn::operations::trace;

using namespace device_testing;
using ttnn::Tensor;

const CoreRange kCore({0, 0}, {0, 0});

/// Copies pages of a tensor to another one.
const std::string kCopy = R"(
#include "api/dataflow/dataflow_api.h"
#include "api/tensor/tensor_accessor.h"
void kernel_main() {
    constexpr auto from_layout = TensorAccessorArgs<0>();
    constexpr auto to_layout = TensorAccessorArgs<from_layout.next_compile_time_args_offset()>();
    const auto from = TensorAccessor(from_layout, get_arg_val<uint32_t>(0));
    const auto to = TensorAccessor(to_layout, get_arg_val<uint32_t>(1));
    constexpr uint32_t pages = get_named_compile_time_arg_val("pages");
    for (uint32_t page = 0; page < pages; ++page) {
        cb_reserve_back(0, 1);
        noc_async_read_page(page, from, get_write_ptr(0));
        noc_async_read_barrier();
        noc_async_write_page(page, to, get_write_ptr(0));
        noc_async_write_barrier();
    }
}
)";

Tensor tensor(const ttnn::Shape& shape, DataType data_type, Layout layout,
              const MemoryConfig& memory = ttnn::DRAM_MEMORY_CONFIG,
              distributed::MeshDevice* on = &device()) {
    std::vector<float> values(shape.volume());
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(i % 251) - 100.0F;
    }
    const TensorSpec spec(shape, TensorLayout(data_type, PageConfig(layout), memory));
    if (data_type == DataType::BFLOAT16) {
        return Tensor::from_vector(std::vector<bfloat16>(values.begin(), values.end()), spec, on);
    }
    return Tensor::from_vector(values, spec, on);
}

Tensor empty_like(const Tensor& like) {
    return ttnn::empty(like.logical_shape(), like.dtype(), like.layout(), like.device(),
                       like.memory_config());
}

ProgramDescriptor copying(const Tensor& from, const Tensor& to, std::uint32_t pages) {
    const auto page = static_cast<std::uint32_t>(from.buffer()->page_size());
    CBFormatDescriptor format;
    format.data_format = datatype_to_dataformat_converter(from.dtype());
    format.page_size = page;
    CBDescriptor room;
    room.total_size = 2 * page;
    room.core_ranges = kCore;
    room.format_descriptors = {format};
    KernelDescriptor kernel;
    kernel.kernel_source = kCopy;
    kernel.source_type = KernelDescriptor::SourceType::SOURCE_CODE;
    kernel.core_ranges = kCore;
    TensorAccessorArgs(*from.buffer()).append_to(kernel.compile_time_args);
    TensorAccessorArgs(*to.buffer()).append_to(kernel.compile_time_args);
    kernel.named_compile_time_args = {{"pages", pages}};
    kernel.config = ReaderConfigDescriptor{};
    kernel.emplace_runtime_args({0, 0}, {from.buffer(), to.buffer()});
    ProgramDescriptor program;
    program.cbs = {room};
    program.kernels = {kernel};
    return program;
}

std::vector<float> values_of(const Tensor& tensor) {
    if (tensor.dtype() != DataType::BFLOAT16) {
        return tensor.to_vector<float>();
    }
    const auto values = tensor.to_vector<bfloat16>();
    return {values.begin(), values.end()};
}

/// Checks that a copy has the elements of its source, whatever the pages of both.
void check_copy(const Tensor& from) {
    const Tensor to = empty_like(from);
    const Tensor copy = ttnn::generic_op({from, to}, copying(from, to, from.buffer()->num_pages()));
    expect(values_of(copy) == values_of(from), "the copy differs");
}

void test_copies() {
    check_copy(tensor(ttnn::Shape({2, 40, 70}), DataType::FLOAT32, Layout::TILE));
    check_copy(tensor(ttnn::Shape({33}), DataType::BFLOAT16, Layout::TILE));
    check_copy(tensor(ttnn::Shape({64, 32}), DataType::BFLOAT8_B, Layout::TILE));
    check_copy(tensor(ttnn::Shape({5, 32}), DataType::BFLOAT16, Layout::ROW_MAJOR));
    check_copy(
        tensor(ttnn::Shape({64, 64}), DataType::FLOAT32, Layout::TILE, ttnn::L1_MEMORY_CONFIG));
    const ShardSpec shards(CoreRange({0, 0}, {1, 0}), {32, 64});
    check_copy(tensor(ttnn::Shape({64, 64}), DataType::BFLOAT16, Layout::TILE,
                      MemoryConfig(TensorMemoryLayout::HEIGHT_SHARDED, BufferType::L1, shards)));
}

/// ttnn operations and device programs see each other's writes.
void test_calls_around_a_program() {
    const Tensor x = tensor(ttnn::Shape({32, 64}), DataType::FLOAT32, Layout::TILE);
    const Tensor y = empty_like(x);
    const ProgramDescriptor program = copying(x, y, 2);
    ttnn::generic_op({x, y}, program);
    const Tensor negated = ttnn::neg(y);
    ttnn::generic_op({negated, x}, copying(negated, x, 2));
    ttnn::generic_op({x, y}, program);
    expect(values_of(y) == values_of(negated), "the program did not read what it was given last");
}

void test_pages_that_nobody_wrote() {
    const Tensor x = tensor(ttnn::Shape({32, 64}), DataType::FLOAT32, Layout::TILE);
    const Tensor y = empty_like(x);
    const Tensor z = empty_like(x);
    expect_diagnosis([&] { ttnn::generic_op({y, z}, copying(y, z, 2)); }, {"was never written"});
    const auto found = values_of(ttnn::generic_op({x, z}, copying(x, z, 1)));
    expect(found[0] == -100.0F && found[32] != found[32], "the second tile should have no values");
}

/// A replay runs programs at the captured addresses, on the tensors' current content.
void test_traces() {
    const Tensor x = tensor(ttnn::Shape({64, 64}), DataType::FLOAT32, Layout::TILE);
    const auto call = [&x](std::uint32_t pages) {
        const Tensor between = ttnn::neg(x);
        const Tensor copy = empty_like(between);
        return ttnn::abs(ttnn::generic_op({between, copy}, copying(between, copy, pages)));
    };
    ttnn::abs(ttnn::neg(x));
    const auto first = trace::begin_trace_capture(&device(), std::nullopt);
    expect_diagnosis([&] { call(4); }, {"Writes are not supported during trace capture"});
    trace::end_trace_capture(&device(), first, std::nullopt);

    const auto expected = values_of(call(4));
    const auto id = trace::begin_trace_capture(&device(), std::nullopt);
    Tensor result = call(4);
    expect_diagnosis([&] { call(3); }, {"Writes are not supported during trace capture"});
    trace::end_trace_capture(&device(), id, std::nullopt);
    const auto unset = values_of(result);
    expect(unset[0] != unset[0], "a captured program has not run");
    for (int replay = 0; replay < 2; ++replay) {
        // Tensors in memory that only the trace still uses are not overwritten.
        const Tensor other = tensor(ttnn::Shape({64, 64}), DataType::FLOAT32, Layout::TILE);
        const auto before = values_of(other);
        trace::execute_trace(&device(), id, std::nullopt, false);
        expect(values_of(result) == expected, "a replay computes what the calls do");
        expect(values_of(other) == before, "a replay writes to its own tensors");
    }
    trace::release_trace(&device(), id);
    expect_diagnosis([&] { trace::execute_trace(&device(), id, std::nullopt, false); },
                     {"must exist on the Mesh device"});
}

/// A trace that reads a freed tensor is refused.
void test_traces_of_tensors_that_are_gone() {
    Tensor x = tensor(ttnn::Shape({32, 64}), DataType::FLOAT32, Layout::TILE);
    const Tensor y = empty_like(x);
    ttnn::generic_op({x, y}, copying(x, y, 2));
    const auto id = trace::begin_trace_capture(&device(), std::nullopt);
    ttnn::generic_op({x, y}, copying(x, y, 2));
    trace::end_trace_capture(&device(), id, std::nullopt);
    trace::execute_trace(&device(), id, std::nullopt, false);
    x.deallocate(true);
    expect_diagnosis([&] { trace::execute_trace(&device(), id, std::nullopt, false); },
                     {"in a call of generic_op that has been deallocated"});
    trace::release_trace(&device(), id);
}

void test_meshes() {
    const auto mesh = distributed::MeshDevice::create(
        distributed::MeshDeviceConfig(distributed::MeshShape(1, 2)));
    const Tensor x = tensor(ttnn::Shape({32, 64}), DataType::FLOAT32, Layout::TILE,
                            ttnn::DRAM_MEMORY_CONFIG, mesh.get());
    const Tensor y = empty_like(x);
    const ProgramDescriptor both = copying(x, y, 2);
    ttnn::generic_op({x, y}, both);
    experimental::MeshProgramDescriptor twice;
    const distributed::MeshCoordinateRange first(distributed::MeshCoordinate(0, 0));
    twice.mesh_programs = {{first, both}, {first, both}};
    expect_diagnosis([&] { ttnn::generic_op({x, y}, twice); },
                     {"Duplicate MeshCoordinateRange found in MeshProgramDescriptor"});
}

void test_what_is_refused() {
    const Tensor x = tensor(ttnn::Shape({32, 32}), DataType::FLOAT32, Layout::TILE);
    const Tensor y = empty_like(x);
    const Tensor host = tensor(ttnn::Shape({32, 32}), DataType::FLOAT32, Layout::TILE,
                               ttnn::DRAM_MEMORY_CONFIG, nullptr);
    const ProgramDescriptor program = copying(x, y, 1);
    expect_diagnosis([&] { ttnn::generic_op({}, program); }, {"io_tensors must not be empty"});
    expect_diagnosis([&] { ttnn::generic_op({x}, program); },
                     {"at least one input tensor and one output tensor, got 1 tensors."});
    expect_diagnosis([&] { ttnn::generic_op({host, y}, program); }, {"must be on a device"});
    expect_diagnosis([&] { ttnn::generic_op({x, host}, program); }, {"must be on device"});
    expect_diagnosis([&] { host.buffer(); }, {"Expected Tensor with DeviceStorage"});

    ProgramDescriptor wrong = program;
    wrong.semaphores.resize(2);
    for (SemaphoreDescriptor& semaphore : wrong.semaphores) {
        semaphore.core_ranges = kCore;
    }
    expect_diagnosis([&] { ttnn::generic_op({x, y}, wrong); },
                     {"Semaphore id 0 already in use on core (x=0,y=0)"});
    expect(wrong.find_available_semaphore_id({0, 0}, tt::CoreType::WORKER) == 1U, "1 is free");

    wrong = program;
    wrong.cbs[0].format_descriptors[0].page_size = 4000;
    expect_diagnosis([&] { ttnn::generic_op({x, y}, wrong); }, {"must be divisible by page size"});

    wrong = program;
    wrong.cbs[0].total_size = 4096 * 400;
    expect_diagnosis([&] { ttnn::generic_op({x, y}, wrong); },
                     {"Statically allocated circular buffers", "beyond max L1 size"});
}

}  // namespace

int main() {
    test_copies();
    test_calls_around_a_program();
    test_pages_that_nobody_wrote();
    test_traces();
    test_traces_of_tensors_that_are_gone();
    test_meshes();
    test_what_is_refused();
    return 0;
}
