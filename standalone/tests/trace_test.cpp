#include "ttnn/operations/trace.hpp"

#include <string>
#include <vector>

#include "compute_testing.hpp"
#include "ttnn/operations/copy/typecast/typecast.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/creation/creation.hpp"
#include "ttnn/operations/data_movement/copy/copy.hpp"
#include "ttnn/operations/data_movement/slice/slice.hpp"
#include "ttnn/operations/eltwise/binary/binary.hpp"
#include "ttnn/operations/eltwise/unary/unary.hpp"
#include "ttnn/operations/matmul/matmul.hpp"
#include "ttnn/tensor/tensor_ops.hpp"

using namespace compute_testing;
namespace trace = ttnn::operations::trace;

namespace {

/// A host tensor like a device tensor, with its own elements.
Tensor host_values(const Tensor& like, float scale) {
    std::vector<float> values(like.logical_volume());
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = scale * static_cast<float>(i % 7);
    }
    return Tensor::from_span(ttsl::Span<const float>(values), like.tensor_spec());
}

/// The trace of the device commands of `run`.
template <typename Run>
ttnn::MeshTraceId captured(const Run& run) {
    const auto id = trace::begin_trace_capture(device(), std::nullopt);
    run();
    trace::end_trace_capture(device(), id, std::nullopt);
    return id;
}

void replay(ttnn::MeshTraceId id) { trace::execute_trace(device(), id, std::nullopt, false); }

Tensor layer(const Tensor& input, const Tensor& weight) {
    Tensor product = ttnn::matmul(input, weight);
    Tensor shifted = ttnn::add(product, 1.0F);
    product.deallocate(true);
    return ttnn::exp(ttnn::multiply(shifted, shifted));
}

void expect_same(const Tensor& actual, const Tensor& expected, const std::string& what) {
    expect(actual.to_vector<float>() == expected.to_vector<float>(), what);
}

void test_replays_compute_with_what_the_inputs_hold() {
    Tensor input = draw_tensor(Shape({32, 64}));
    const Tensor weight = draw_tensor(Shape({64, 32}));
    const Tensor first = layer(input, weight);
    Tensor output;
    const auto id = captured([&] { output = layer(input, weight); });
    const auto unset = output.to_vector<float>();
    expect(unset[0] != unset[0], "a captured operation has not run");
    for (const float scale : {0.01F, 0.02F, 0.03F}) {
        tt::tt_metal::copy_to_device(host_values(input, scale), input);
        replay(id);
        expect_same(output, layer(input, weight), "a replay computes what the calls do");
    }
    expect(first.to_vector<float>()[0] == first.to_vector<float>()[0],
           "results from before the capture stay");
    trace::release_trace(device(), id);
    expect_refused([&] { replay(id); }, "Trace instance");
}

void test_operations_in_place_run_with_replays_only() {
    Tensor counter = draw_tensor(Shape({32, 32}));
    const Tensor zeros = ttnn::multiply(counter, 0.0F);
    const Tensor one = ttnn::add(zeros, 1.0F);
    const auto increase = [&] { ttnn::copy(ttnn::add(counter, one), counter); };
    increase();
    ttnn::copy(zeros, counter);
    const auto id = captured(increase);
    expect(counter.to_vector<float>()[5] == 0, "the capture changes nothing");
    replay(id);
    replay(id);
    expect(counter.to_vector<float>()[5] == 2, "each replay adds one");
    trace::release_trace(device(), id);
}

void test_spans_and_options_outlive_the_call() {
    Tensor input = draw_tensor(Shape({64, 64}));
    const auto part = [&] {
        const ttnn::SmallVector<std::int32_t> begin{0, 32};
        const ttnn::SmallVector<std::int32_t> end{32, 64};
        const ttnn::SmallVector<std::int32_t> step{1, 1};
        return ttnn::add(ttnn::slice(input, begin, end, step), 1.0F);
    };
    part();
    Tensor output;
    const auto id = captured([&] { output = part(); });
    tt::tt_metal::copy_to_device(host_values(input, 0.5F), input);
    replay(id);
    expect_same(output, part(), "the replayed slice");
    trace::release_trace(device(), id);
}

void test_what_a_capture_refuses() {
    const Tensor input = draw_tensor(Shape({32, 32}));
    Tensor copy = draw_tensor(Shape({32, 32}));
    const Tensor host = host_values(input, 1);
    ttnn::relu(input);
    const auto id = trace::begin_trace_capture(device(), std::nullopt);
    expect_refused([&] { trace::begin_trace_capture(device(), std::nullopt); },
                   "already being used for tracing");
    expect_refused([&] { tt::tt_metal::copy_to_device(host, copy); },
                   "Writes are not supported during trace capture");
    expect_refused([&] { (void)host.to_device(device()); },
                   "Writes are not supported during trace capture");
    expect_refused(
        [&] { ttnn::full(Shape({32, 32}), 1.0F, DataType::FLOAT32, Layout::TILE, *device()); },
        "Writes are not supported during trace capture");
    expect_refused([&] { (void)input.to_vector<float>(); },
                   "Reads are not supported during trace capture");
    expect_refused([&] { (void)input.cpu(); }, "Reads are not supported during trace capture");
    // The kernels of an operation that was not called before would have to be sent.
    expect_refused([&] { ttnn::sigmoid(input); }, "Writes are not supported during trace capture");
    ttnn::relu(input);
    expect_refused(
        [&] { trace::end_trace_capture(device(), ttnn::MeshTraceId(id.get() + 1), std::nullopt); },
        "is not being used for tracing");
    trace::end_trace_capture(device(), id, std::nullopt);
    trace::release_trace(device(), id);
}

void test_a_trace_needs_its_operands() {
    Tensor input = draw_tensor(Shape({32, 32}));
    ttnn::relu(input);
    const auto id = captured([&] { ttnn::relu(input); });
    input.deallocate(true);
    expect_refused([&] { replay(id); }, "has been deallocated");
    trace::release_trace(device(), id);
}

void test_a_region_has_to_be_large_enough() {
    const auto small = ttnn::device::open_mesh_device(0, 0, 512);
    const Tensor input = host_values(draw_tensor(Shape({32, 32})), 1).to_device(small.get());
    ttnn::relu(input);
    const auto id = trace::begin_trace_capture(small.get(), std::nullopt);
    ttnn::relu(input);
    expect_refused([&] { trace::end_trace_capture(small.get(), id, std::nullopt); },
                   "only 512B is allocated for trace region");
}

}  // namespace

int main() {
    test_replays_compute_with_what_the_inputs_hold();
    test_operations_in_place_run_with_replays_only();
    test_spans_and_options_outlive_the_call();
    test_what_a_capture_refuses();
    test_a_trace_needs_its_operands();
    test_a_region_has_to_be_large_enough();
}
