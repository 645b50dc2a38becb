// Elementwise operations of three operands, bounds, and quantization.

#include "ttnn/operations/eltwise/ternary/ternary.hpp"

#include "call.hpp"
#include "ttnn/operations/eltwise/quantization/quantization.hpp"
#include "ttnn/operations/eltwise/ternary/ternary_composite_op.hpp"
#include "ttnn/operations/eltwise/unary/unary_composite.hpp"

namespace rules {

namespace {

using ttnn::operations::ternary::TensorScalarVariant;

Results where(Call& call) {
    const auto memory_config = call.memory_config();
    call.take(kWideRows);
    for (const char* differing : {"cond", "true", "false"}) {
        call.take(std::string(differing) + " dtype differs");
    }
    const Tensor condition = call.input(0);
    if (call.take("TTS 1.0") || call.take("TTS 1(int)")) {
        return ttnn::where(condition, call.input(1), 1.0F);
    }
    if (call.take("TST 1.0") || call.take("TST 1(int)")) {
        return ttnn::where(condition, 1.0F, call.input(1));
    }
    if (call.take("TSS 1.0,0.0") || call.take("TSS 1,0 (int)")) {
        return ttnn::where(condition, 1.0F, 0.0F);
    }
    if (call.take("TSS 1(int),0.5")) {
        return ttnn::where(condition, 1.0F, 0.5F);
    }
    std::optional<Tensor> output;
    for (const char* kind : {"bf16", "f32", "i32", "other shape"}) {
        if (call.take(std::string("output_tensor ") + kind)) {
            output = call.input(3);
        }
    }
    call.take("TTT");
    if (call.inputs() == 1) {
        return ttnn::where(condition, condition, condition, memory_config, output);
    }
    return ttnn::where(condition, call.input(1), call.input(2), memory_config, output);
}

/// A bound of clamp, of the kind that its text has.
std::optional<std::variant<float, std::int32_t>> bound(Call& call, const char* name) {
    const auto text = call.value(name);
    if (!text) {
        return std::nullopt;
    }
    if (text->find('.') == std::string::npos) {
        return static_cast<std::int32_t>(std::stoi(*text));
    }
    return std::stof(*text);
}

Results clamp(Call& call) {
    const Tensor input = call.input(0);
    std::optional<Tensor> lower;
    std::optional<Tensor> upper;
    if (call.take("tensor max")) {
        return ttnn::clamp(input, lower, std::optional(call.input(1)));
    }
    if (call.take("tensor min")) {
        lower = call.input(1);
        upper = call.take("max") ? std::optional(call.input(2)) : std::nullopt;
        return ttnn::clamp(input, lower, upper);
    }
    if (call.take("tensor bounds other dtype") || call.take("tensor bounds broadcast")) {
        return ttnn::clamp(input, std::optional(call.input(1)), std::optional(call.input(2)));
    }
    std::optional<std::variant<float, std::int32_t>> low = bound(call, "min");
    std::optional<std::variant<float, std::int32_t>> high = bound(call, "max");
    if (call.take("min>max")) {
        low = 1.0F;
        high = 0.0F;
    }
    std::optional<Tensor> output;
    if (call.take("output_tensor")) {
        output = call.input(1);
    }
    if (call.take("scalars") || output) {
        low = 0.0F;
        high = 1.0F;
    }
    call.take("none");
    return ttnn::clamp(input, low, high, std::nullopt, output);
}

Results clip(Call& call) {
    const Tensor input = call.input(0);
    if (call.take("tensor min")) {
        call.take("max");
        return ttnn::clip(input, std::optional(call.input(1)), std::optional(call.input(2)));
    }
    // The binding takes floats, and makes them of integers.
    return ttnn::clip(input, call.number("min"), call.number("max"));
}

/// addcmul, addcdiv
template <typename Function>
Operation with_value(Function function) {
    return [function](Call& call) -> Results {
        const float value = call.number("value").value_or(1.0F);
        return function(call.input(0), call.input(1), call.input(2), value);
    };
}

Results lerp(Call& call) {
    if (call.take("scalar c=0.5")) {
        return ttnn::lerp(call.input(0), call.input(1), 0.5F);
    }
    return ttnn::lerp(call.input(0), call.input(1), call.input(2));
}

/// Scale and zero point, each a tensor where the row has one.
struct Quantization {
    explicit Quantization(Call& call) : dtype(call.dtype()) {
        call.take("4D");
        call.take("per-tensor, tensors (1,)");
        if (const auto position = call.integer("axis")) {
            axis = static_cast<std::int32_t>(*position);
            call.take("tensors (C,)");
            call.take("tensors (64,)");
        }
        if (call.take("float zp")) {
            throw Unmapped{"a zero point that is no integer"};
        }
        for (const char* words : {"scalar scale,zp", "tensor scale, int zp", "scalar"}) {
            call.take(words);
        }
        if (call.inputs() > 1) {
            scale = call.input(1);
        }
        if (call.inputs() > 2) {
            zero_point = call.input(2);
        }
    }

    std::optional<const DataType> dtype;
    std::optional<std::int32_t> axis;
    std::variant<Tensor, float> scale = 0.5F;
    std::variant<Tensor, std::int32_t> zero_point = std::int32_t{1};
};

}  // namespace

void add_ternary(Operations& operations) {
    operations["where"] = where;
    operations["clamp"] = clamp;
    operations["clip"] = clip;
    operations["lerp"] = lerp;
    operations["addcmul"] =
        with_value([](const auto&... arguments) { return ttnn::addcmul(arguments...); });
    operations["addcdiv"] =
        with_value([](const auto&... arguments) { return ttnn::addcdiv(arguments...); });
    operations["mac"] = [](Call& call) -> Results {
        return ttnn::mac(call.input(0), call.input(1), call.input(2), std::nullopt);
    };
    operations["quantize"] = [](Call& call) -> Results {
        const Quantization to(call);
        return ttnn::quantize(call.input(0), to.scale, to.zero_point, to.axis, to.dtype);
    };
    operations["dequantize"] = [](Call& call) -> Results {
        const Quantization from(call);
        return ttnn::dequantize(call.input(0), from.scale, from.zero_point, from.axis, from.dtype);
    };
    operations["requantize"] = [](Call& call) -> Results {
        const Quantization both(call);
        return ttnn::requantize(call.input(0), both.scale, both.zero_point, both.scale,
                                both.zero_point, both.axis, both.dtype);
    };
}

}  // namespace rules
