#include <functional>
#include <limits>

#include "compute_testing.hpp"
#include "ttnn/operations/eltwise/binary/binary_composite.hpp"
#include "ttnn/operations/eltwise/quantization/quantization.hpp"
#include "ttnn/operations/eltwise/ternary/ternary_composite_op.hpp"
#include "ttnn/operations/eltwise/unary/unary_composite.hpp"

using namespace compute_testing;
using ttnn::operations::unary::EltwiseUnaryWithParam;
using ttnn::operations::unary::UnaryOpType;

namespace {

using Function = std::function<double(double)>;
using Operation = std::function<Tensor(const Tensor&)>;

struct UnaryRow {
    const char* name;
    Operation operation;
    Function reference;
    float low = -2.0F;
    float high = 2.0F;
};

#define UNARY(name, expression, ...)                                                      \
    UnaryRow {                                                                            \
        #name, [](const Tensor& t) { return ttnn::name(t); },                             \
            []([[maybe_unused]] double x) -> double { return expression; }, ##__VA_ARGS__ \
    }
#define UNARY_WITH(name, parameter, expression)                            \
    UnaryRow {                                                             \
        #name, [](const Tensor& t) { return ttnn::name(t, parameter); },   \
            []([[maybe_unused]] double x) -> double { return expression; } \
    }

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double softplus(double x) { return std::log1p(std::exp(x)); }

const std::vector<UnaryRow> kUnary{
    UNARY(abs, std::fabs(x)),
    UNARY(neg, -x),
    UNARY(acos, std::acos(x), -0.9F, 0.9F),
    UNARY(asin, std::asin(x), -0.9F, 0.9F),
    UNARY(asinh, std::asinh(x)),
    UNARY(atan, std::atan(x)),
    UNARY(atanh, std::atanh(x), -0.9F, 0.9F),
    UNARY(acosh, std::acosh(x), 1.1F, 4.0F),
    UNARY(sin, std::sin(x)),
    UNARY(cos, std::cos(x)),
    UNARY(tan, std::tan(x), -1.2F, 1.2F),
    UNARY(sinh, std::sinh(x)),
    UNARY(cosh, std::cosh(x)),
    UNARY(tanh, std::tanh(x)),
    UNARY(exp, std::exp(x)),
    UNARY(exp2, std::exp2(x)),
    UNARY(expm1, std::expm1(x)),
    UNARY(log, std::log(x), 0.1F, 4.0F),
    UNARY(log2, std::log2(x), 0.1F, 4.0F),
    UNARY(log10, std::log10(x), 0.1F, 4.0F),
    UNARY(log1p, std::log1p(x), -0.9F, 4.0F),
    UNARY(sqrt, std::sqrt(x), 0.1F, 4.0F),
    UNARY(rsqrt, 1 / std::sqrt(x), 0.1F, 4.0F),
    UNARY(cbrt, std::cbrt(x)),
    UNARY(reciprocal, 1 / x, 0.25F, 4.0F),
    UNARY(square, x* x),
    UNARY(sign, (x > 0) - (x < 0)),
    UNARY(signbit, std::signbit(x)),
    UNARY(floor, std::floor(x)),
    UNARY(ceil, std::ceil(x)),
    UNARY(trunc, std::trunc(x)),
    UNARY(frac, x - std::trunc(x)),
    UNARY(round, std::nearbyint(x)),
    UNARY(gez, x >= 0),
    UNARY(gtz, x > 0),
    UNARY(lez, x <= 0),
    UNARY(ltz, x < 0),
    UNARY(eqz, x == 0),
    UNARY(nez, x != 0),
    UNARY(logical_not, x == 0),
    UNARY(relu, std::fmax(x, 0)),
    UNARY(relu6, std::fmin(std::fmax(x, 0), 6), -2.0F, 8.0F),
    UNARY(sigmoid, sigmoid(x)),
    UNARY(sigmoid_accurate, sigmoid(x)),
    UNARY(log_sigmoid, -softplus(-x)),
    UNARY(silu, x* sigmoid(x)),
    UNARY(swish, x* sigmoid(x)),
    UNARY(gelu, 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)))),
    UNARY(mish, x* std::tanh(softplus(x))),
    UNARY(hardsigmoid, std::fmin(std::fmax(x / 6 + 0.5, 0), 1), -5.0F, 5.0F),
    UNARY(hardswish, x* std::fmin(std::fmax(x / 6 + 0.5, 0), 1), -5.0F, 5.0F),
    UNARY(softsign, x / (1 + std::fabs(x))),
    UNARY(tanhshrink, x - std::tanh(x)),
    UNARY(hardtanh, std::fmin(std::fmax(x, -1), 1)),
    UNARY(selu, 1.050700987 * (x > 0 ? x : 1.673263242 * std::expm1(x))),
    UNARY(elu, x > 0 ? x : std::expm1(x)),
    UNARY(hardshrink, std::fabs(x) > 0.5 ? x : 0),
    UNARY(softshrink, x > 0.5    ? x - 0.5
                      : x < -0.5 ? x + 0.5
                                 : 0),
    UNARY(erf, std::erf(x)),
    UNARY(erfc, std::erfc(x)),
    UNARY(lgamma, std::lgamma(x), 0.5F, 4.0F),
    UNARY(deg2rad, x* std::acos(-1.0) / 180),
    UNARY(rad2deg, x * 180 / std::acos(-1.0)),
    UNARY(identity, x),
    UNARY(isfinite, 1),
    UNARY(isnan, 0),
    UNARY_WITH(leaky_relu, 0.1F, x > 0 ? x : x * 0.1F),
    UNARY_WITH(relu_max, 1.0F, std::fmin(std::fmax(x, 0), 1)),
    UNARY_WITH(relu_min, 0.5F, std::fmax(x, 0.5)),
    UNARY_WITH(celu, 2.0F, x > 0 ? x : 2 * std::expm1(x / 2)),
    UNARY_WITH(rpow, 2.0F, std::exp2(x)),
    UNARY_WITH(unary_fmod, 0.75F, std::fmod(x, 0.75)),
    UNARY_WITH(heaviside, 0.5F,
               x > 0   ? 1
               : x < 0 ? 0
                       : 0.5),
    UNARY_WITH(gt_unary, 0.5F, x > 0.5),
    UNARY_WITH(fill, 0.5F, 0.5),
    UNARY_WITH(power_iterative, 3U, x * x * x),
    UNARY_WITH(rdiv, 2.0F, 2 / x),
};

void unary_operations_compute_their_functions() {
    // Large enough for the table of bfloat16 results, and no multiple of a chunk.
    const Shape shape({3, 50, 501});
    for (const UnaryRow& row : kUnary) {
        const std::vector<float> drawn = draw(shape.volume(), row.low, row.high);
        for (const DataType dtype : {DataType::FLOAT32, DataType::BFLOAT16}) {
            const Tensor input = make_tensor(shape, drawn, dtype);
            const Tensor result = row.operation(input);
            std::vector<float> expected = values_of(input);
            for (float& value : expected) {
                value = static_cast<float>(row.reference(value));
            }
            expect(result.dtype() == dtype, std::string(row.name) + " keeps the data type");
            std::printf("%s\n", row.name);  // the last one printed is the one that failed
            expect_close(values_of(result), expected, tolerance_of(dtype));
        }
    }
}

void special_functions_agree_with_known_values() {
    const auto value = [](const Tensor& tensor) { return values_of(tensor)[0]; };
    const auto at = [](float x) { return make_tensor(Shape({1}), {x}); };
    expect(std::fabs(value(ttnn::digamma(at(1.0F))) + 0.5772157F) < 1e-5F, "digamma");
    expect(std::fabs(value(ttnn::i0(at(1.0F))) - 1.2660659F) < 1e-5F, "i0");
    expect(std::fabs(value(ttnn::i1(at(1.0F))) - 0.5651591F) < 1e-5F, "i1");
    expect(std::fabs(value(ttnn::erfinv(at(0.5F))) - 0.4769363F) < 1e-5F, "erfinv");
    expect(std::fabs(value(ttnn::logit(at(0.75F))) - 1.0986123F) < 1e-5F, "logit");
    expect(std::fabs(value(ttnn::softplus(at(1.0F), 1.0F, 20.0F)) - 1.3132617F) < 1e-5F,
           "softplus");
    expect(value(ttnn::threshold(at(1.0F), 2.0F, 7.0F)) == 7.0F, "threshold");
    expect(value(ttnn::round(at(2.346F), 2)) == 2.35F, "round to decimals");
    const float infinity = std::numeric_limits<float>::infinity();
    expect(value(ttnn::isinf(at(-infinity))) == 1.0F, "isinf");
    expect(value(ttnn::exp(at(-infinity))) == 0.0F, "exp(-inf)");
    expect(std::isnan(value(ttnn::relu(at(std::nanf(""))))), "NaN passes through relu");
}

void unary_operations_of_integers_are_exact() {
    const std::vector<std::int32_t> values{-2147483647, -3, 0, 16777217};
    const Tensor tensor = ttnn::Tensor::from_vector(
        values, ttcodegen::cpu::make_spec(Shape({4}), DataType::INT32, Layout::TILE, {}), device());
    expect(ttnn::abs(tensor).to_vector<std::int32_t>() ==
               std::vector<std::int32_t>{2147483647, 3, 0, 16777217},
           "abs");
    expect(ttnn::bitwise_not(tensor).to_vector<std::int32_t>()[1] == 2, "bitwise_not");
    expect(ttnn::relu(tensor).to_vector<std::int32_t>()[3] == 16777217, "relu");
    expect(ttnn::logical_not(tensor).to_vector<std::int32_t>()[2] == 1, "logical_not");
    expect_refused([] { return ttnn::logical_not(draw_tensor(Shape({4}), DataType::UINT8)); },
                   "logical_not");
    expect_refused([&] { return ttnn::lgamma(tensor); }, "lgamma");
}

void unary_operations_refuse_and_write_where_asked() {
    const Tensor tensor = draw_tensor(Shape({32, 64}), DataType::BFLOAT16);
    expect_refused([&] { return ttnn::relu(ttnn::Tensor(tensor.cpu())); }, "must be on device");
    const Tensor output = draw_tensor(Shape({32, 64}), DataType::FLOAT32);
    const Tensor result = ttnn::relu(tensor, std::nullopt, output);
    expect(result.dtype() == DataType::FLOAT32 && values_of(result) == values_of(output), "output");
    const Tensor rows = draw_tensor(Shape({32, 64}), DataType::BFLOAT16, Layout::ROW_MAJOR);
    expect_refused([&] { return ttnn::relu(tensor, std::nullopt, rows); }, "must match input");
    expect(ttnn::relu(tensor, ttnn::L1_MEMORY_CONFIG).memory_config().is_l1(), "memory config");
    const std::vector<EltwiseUnaryWithParam> chain{
        UnaryOpType::RELU, EltwiseUnaryWithParam(UnaryOpType::ADD_UNARY_SFPU, 1.0F)};
    expect(values_of(ttnn::unary_chain(make_tensor(Shape({2}), {-1, 2}), chain)) ==
               std::vector<float>{1, 3},
           "chain");
}

struct Broadcast {
    Shape a;
    Shape b;
    Shape result;
};

const std::vector<Broadcast> kBroadcasts{
    {Shape({33, 70}), Shape({33, 70}), Shape({33, 70})},
    {Shape({33, 70}), Shape({70}), Shape({33, 70})},
    {Shape({33, 70}), Shape({33, 1}), Shape({33, 70})},
    {Shape({33, 1}), Shape({1, 70}), Shape({33, 70})},
    {Shape({1, 1}), Shape({33, 70}), Shape({33, 70})},
    {Shape({2, 3, 8, 9}), Shape({3, 1, 1}), Shape({2, 3, 8, 9})},
    {Shape({2, 1, 4, 1, 6}), Shape({3, 1, 5, 1}), Shape({2, 3, 4, 5, 6})},
    {Shape({4}), Shape({2, 1, 2, 1, 1, 1}), Shape({2, 1, 2, 1, 1, 4})},
};

std::size_t position(std::size_t flat, const Shape& result, const Shape& own) {
    std::size_t offset = 0;
    std::size_t stride = 1;
    for (std::size_t i = 1; i <= result.rank(); ++i) {
        const std::size_t index = flat % result.view()[result.rank() - i];
        flat /= result.view()[result.rank() - i];
        if (i <= own.rank()) {
            const std::size_t size = own.view()[own.rank() - i];
            offset += (size == 1 ? 0 : index) * stride;
            stride *= size;
        }
    }
    return offset;
}

void binary_operations_broadcast_like_numpy() {
    for (const DataType dtype : {DataType::FLOAT32, DataType::BFLOAT16, DataType::INT32}) {
        for (const Broadcast& row : kBroadcasts) {
            const Tensor a = make_tensor(row.a, draw(row.a.volume(), -100, 100, 1), dtype);
            const Tensor b = make_tensor(row.b, draw(row.b.volume(), -100, 100, 2), dtype);
            const std::vector<float> left = values_of(a);
            const std::vector<float> right = values_of(b);
            const Tensor difference = ttnn::subtract(a, b);
            const Tensor chosen = ttnn::where(ttnn::gt(a, b), a, b);
            expect_shape(difference, row.result);
            std::vector<float> expected;
            std::vector<float> larger;
            for (std::size_t i = 0; i < row.result.volume(); ++i) {
                const float x = left[position(i, row.result, row.a)];
                const float y = right[position(i, row.result, row.b)];
                expected.push_back(x - y);
                larger.push_back(x > y ? x : y);
            }
            expect_close(values_of(difference), expected, tolerance_of(dtype));
            expect_close(values_of(chosen), larger, 0.0);
        }
    }
    const Tensor a = draw_tensor(Shape({32, 64}));
    expect_refused([&] { return ttnn::add(a, draw_tensor(Shape({32, 32}))); }, "subtile broadcast");
}

void binary_operations_choose_type_layout_and_memory() {
    const Tensor bf16 = draw_tensor(Shape({32, 64}), DataType::BFLOAT16);
    const Tensor f32 = draw_tensor(Shape({32, 64}), DataType::FLOAT32);
    const Tensor rows = draw_tensor(Shape({32, 64}), DataType::BFLOAT16, Layout::ROW_MAJOR);
    expect(ttnn::add(bf16, f32).dtype() == DataType::BFLOAT16, "the first operand's data type");
    expect(ttnn::add(bf16, f32, DataType::FLOAT32).dtype() == DataType::FLOAT32, "as asked");
    expect(ttnn::maximum(bf16, f32, DataType::FLOAT32).dtype() == DataType::BFLOAT16,
           "maximum does not listen");
    expect(ttnn::eq(bf16, f32).dtype() == DataType::BFLOAT16, "comparisons too");
    expect(ttnn::add(rows, bf16).layout() == Layout::TILE &&
               ttnn::add(rows, rows).layout() == Layout::ROW_MAJOR,
           "tiles win");
    expect(ttnn::add(bf16, f32, std::nullopt, ttnn::L1_MEMORY_CONFIG).memory_config().is_l1(),
           "L1");
    expect_refused([&] { return ttnn::add(bf16.cpu(), f32); }, "Input tensor A must be on device");
    expect_refused([&] { return ttnn::add(f32, bf16.cpu()); }, "Input tensor B must be on device");
    expect_refused([&] { return ttnn::add_(rows, 1.0F); }, "Row Major input");
    expect_refused([&] { return ttnn::add(bf16, f32, DataType::FLOAT32, std::nullopt, bf16); },
                   "dtypes should match");
    expect_refused([&] { return ttnn::bitwise_and(bf16, bf16); }, "Unsupported binary op");
    const Tensor i32 = draw_tensor(Shape({32, 64}), DataType::INT32);
    expect(ttnn::divide(i32, 2.0F).dtype() == DataType::FLOAT32, "integer division gives f32");
    expect_refused([&] { return ttnn::divide_(i32, 2.0F); }, "integer division");
    expect_refused([&] { return ttnn::gcd(f32, f32); }, "Unsupported binary op");
}

struct IntegerRow {
    const char* name;
    std::function<Tensor(const Tensor&, const Tensor&)> operation;
    std::vector<std::int32_t> expected;
};

void integer_arithmetic_is_exact_and_wraps() {
    const auto tensor = [](const std::vector<std::int32_t>& values) {
        return ttnn::Tensor::from_vector(
            values,
            ttcodegen::cpu::make_spec(Shape({static_cast<std::uint32_t>(values.size())}),
                                      DataType::INT32, Layout::TILE, {}),
            device());
    };
    const Tensor a = tensor({2147483647, -7, 16777217, 12});
    const Tensor b = tensor({1, 2, 1, -18});
    const std::vector<IntegerRow> rows{
        {"add",
         [](auto& x, auto& y) { return ttnn::add(x, y); },
         {-2147483647 - 1, -5, 16777218, -6}},
        {"multiply",
         [](auto& x, auto& y) { return ttnn::multiply(x, y); },
         {2147483647, -14, 16777217, -216}},
        {"remainder", [](auto& x, auto& y) { return ttnn::remainder(x, y); }, {0, 1, 0, -6}},
        {"fmod", [](auto& x, auto& y) { return ttnn::fmod(x, y); }, {0, -1, 0, 12}},
        {"eq", [](auto& x, auto& y) { return ttnn::eq(x, y); }, {0, 0, 0, 0}},
        {"gcd", [](auto& x, auto& y) { return ttnn::gcd(x, y); }, {1, 1, 1, 6}},
        {"lcm", [](auto& x, auto& y) { return ttnn::lcm(x, y); }, {2147483647, 14, 16777217, 36}},
        {"xor",
         [](auto& x, auto& y) { return ttnn::bitwise_xor(x, y); },
         {2147483646, -5, 16777216, -30}},
        {"left",
         [](auto& x, auto&) { return ttnn::bitwise_left_shift(x, 1); },
         {-2, -14, 33554434, 24}},
        {"right",
         [](auto& x, auto&) { return ttnn::bitwise_right_shift(x, 1); },
         {1073741823, -4, 8388608, 6}},
        {"logical right",
         [](auto& x, auto&) { return ttnn::logical_right_shift(x, 1.0F); },
         {1073741823, 2147483644, 8388608, 6}},
        {"floor",
         [](auto& x, auto& y) { return ttnn::div(x, y, false, "floor"); },
         {2147483647, -4, 16777217, -1}},
        {"pow", [](auto& x, auto&) { return ttnn::pow(x, 2); }, {1, 49, 33554433, 144}},
    };
    for (const IntegerRow& row : rows) {
        expect(row.operation(a, b).to_vector<std::int32_t>() == row.expected, row.name);
    }
    const Tensor small = ttnn::Tensor::from_vector(
        std::vector<std::uint8_t>{250, 3},
        ttcodegen::cpu::make_spec(Shape({2}), DataType::UINT8, Layout::TILE, {}), device());
    expect(ttnn::add(small, small).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{244, 6},
           "u8 wraps");
}

void binary_operations_fuse_activations_and_write_in_place() {
    const Tensor a = make_tensor(Shape({4}), {-3, 1, 2, -1});
    const Tensor b = make_tensor(Shape({4}), {1, 1, -4, 5});
    const EltwiseUnaryWithParam relu(UnaryOpType::RELU);
    const EltwiseUnaryWithParam negate(UnaryOpType::NEG);
    expect(values_of(ttnn::add(a, b, std::nullopt, std::nullopt, std::nullopt, {&relu, 1})) ==
               std::vector<float>{0, 2, 0, 4},
           "after the operation");
    expect(values_of(ttnn::add(a, b, std::nullopt, std::nullopt, std::nullopt, {}, {&relu, 1},
                               {&negate, 1})) == std::vector<float>{-1, 0, 6, -5},
           "before the operation");
    const Tensor sum = ttnn::add_(a, b);
    expect(values_of(a) == std::vector<float>{-2, 2, -2, 4} && values_of(sum) == values_of(a),
           "in place");
    expect(values_of(ttnn::addalpha(a, b, 2.0F)) == std::vector<float>{0, 4, -10, 14}, "addalpha");
    expect_close(
        values_of(ttnn::atan2(make_tensor(Shape({1}), {1}), make_tensor(Shape({1}), {-1}))),
        {2.3561945F}, 1e-6);
    expect(values_of(ttnn::gt(1.0F, b)) == std::vector<float>{0, 0, 1, 0}, "number first");
    expect_close(values_of(ttnn::pow(2.0F, b)), {2, 2, 0.0625F, 32}, 1e-6);
}

void ternary_operations_select_and_clamp() {
    const Tensor condition = make_tensor(Shape({4}), {0, 0.5F, 1, 0});
    const Tensor a = make_tensor(Shape({4}), {1, 2, 3, 4}, DataType::BFLOAT16);
    const Tensor b = make_tensor(Shape({4}), {-1, -2, -3, -4});
    const Tensor chosen = ttnn::where(condition, a, b);
    expect(chosen.dtype() == DataType::BFLOAT16 &&
               values_of(chosen) == std::vector<float>{-1, 2, 3, -4},
           "where");
    expect(ttnn::where(condition, 7.0F, b).dtype() == DataType::FLOAT32, "a tensor's data type");
    const Tensor whole = make_tensor(Shape({4}), {0, 1, 0, 1}, DataType::INT32);
    expect(ttnn::where(whole, 1, 0).dtype() == DataType::FLOAT32, "two numbers make i32 f32");
    expect(ttnn::where(condition, whole, whole).to_vector<std::int32_t>()[1] == 1,
           "half is true among integers, too");
    const Tensor rows = draw_tensor(Shape({4}), DataType::FLOAT32, Layout::ROW_MAJOR);
    expect_refused([&] { return ttnn::where(rows, a, b); }, "Tile layout");
    expect(values_of(ttnn::clamp(b, -3.0F, -2.0F)) == std::vector<float>{-2, -2, -3, -3}, "clamp");
    expect(ttnn::clamp(whole, 0.5F, 2.0F).dtype() == DataType::FLOAT32 &&
               values_of(ttnn::clamp(whole, 0.5F, 2.0F))[0] == 0.5F,
           "i32 with float bounds becomes f32");
    expect(ttnn::clamp(whole, 0, 1).dtype() == DataType::INT32, "whole bounds keep i32");
    expect(values_of(ttnn::clamp(b, std::optional<Tensor>(make_tensor(Shape({1}), {-2})))) ==
               std::vector<float>{-1, -2, -2, -2},
           "a tensor as bound");
    expect_refused([&] { return ttnn::clip(b, std::optional<float>(), std::optional<float>()); },
                   "Please provide one value");
    expect(values_of(ttnn::addcmul(b, b, b, 2.0F)) == std::vector<float>{1, 6, 15, 28}, "addcmul");
    expect_refused([&] { return ttnn::addcmul(a, b, b); }, "same dtype");
    expect(values_of(ttnn::lerp(b, condition, 0.5F)) == std::vector<float>{-0.5F, -0.75F, -1, -2},
           "lerp");
    expect(
        values_of(ttnn::mac(b, b, condition, std::nullopt)) == std::vector<float>{1, 4.5F, 10, 16},
        "mac");
    const Tensor square = make_tensor(Shape({2, 2}), {1, 2, 3, 4});
    expect(values_of(ttnn::tril(square)) == std::vector<float>{1, 0, 3, 4}, "tril");
    expect(values_of(ttnn::triu(square, 1)) == std::vector<float>{0, 2, 0, 0}, "triu");
}

void quantization_goes_there_and_back() {
    const Tensor tensor = make_tensor(Shape({2, 2}), {0.1F, -0.26F, 1.0F, 2.0F});
    const Tensor quantized = ttnn::quantize(tensor, 0.1F, 3);
    expect(quantized.to_vector<std::int32_t>() == std::vector<std::int32_t>{4, 0, 13, 23},
           "scalar");
    expect_close(values_of(ttnn::dequantize(quantized, 0.1F, 3, std::nullopt, DataType::FLOAT32)),
                 {0.1F, -0.3F, 1.0F, 2.0F}, 1e-6);
    expect(ttnn::dequantize(quantized, 0.1F, 3).dtype() == DataType::BFLOAT16, "bf16 by default");
    const Tensor scales = make_tensor(Shape({2}), {0.1F, 0.5F});
    expect(ttnn::quantize(tensor, scales, 0, 1).to_vector<std::int32_t>() ==
               std::vector<std::int32_t>{1, -1, 10, 4},
           "a scale for each column");
    expect(ttnn::requantize(quantized, 0.1F, 3, 0.2F, 0).to_vector<std::int32_t>() ==
               std::vector<std::int32_t>{0, -2, 5, 10},
           "requantize");
    expect_refused([&] { return ttnn::quantize(quantized, 0.1F, 0); }, "floating-point");
    expect_refused([&] { return ttnn::quantize(tensor, scales, 0); }, "scalar-tensor");
    expect_refused([&] { return ttnn::quantize(tensor, 0.1F, scales, 1); }, "int32 zero-points");
}

}  // namespace

int main() {
    unary_operations_compute_their_functions();
    special_functions_agree_with_known_values();
    unary_operations_of_integers_are_exact();
    unary_operations_refuse_and_write_where_asked();
    binary_operations_broadcast_like_numpy();
    binary_operations_choose_type_layout_and_memory();
    integer_arithmetic_is_exact_and_wraps();
    binary_operations_fuse_activations_and_write_in_place();
    ternary_operations_select_and_clamp();
    quantization_goes_there_and_back();
}
