// Softmax and normalisations.

#include "call.hpp"
#include "ttnn/operations/normalization/batch_norm/batch_norm.hpp"
#include "ttnn/operations/normalization/groupnorm/groupnorm.hpp"
#include "ttnn/operations/normalization/layernorm/layernorm.hpp"
#include "ttnn/operations/normalization/rmsnorm/rmsnorm.hpp"
#include "ttnn/operations/normalization/softmax/softmax.hpp"

namespace rules {

namespace {

constexpr float kEpsilon = 1e-12F;

Results softmax(Call& call) {
    call.take(kWideRows);
    call.take("no dim");
    const auto dim = static_cast<int>(call.integer("dim").value_or(-1));
    const bool stable = call.flag("numeric_stable", true);
    return ttnn::softmax(call.input(0), dim, call.memory_config(), std::nullopt, stable);
}

Results softmax_in_place(Call& call) {
    call.take("no dim");
    const auto dim = static_cast<int>(call.integer("dim").value_or(-1));
    if (call.memory_config()) {
        throw Unmapped{"softmax_in_place takes no memory_config"};
    }
    const bool stable = call.flag("numeric_stable", true);
    return ttnn::softmax_in_place(call.input(0), dim, ttnn::SoftmaxDefaultProgramConfig{},
                                  std::nullopt, stable);
}

struct ScaleAndMask {
    explicit ScaleAndMask(Call& call)
        : scale(call.number("scale")), is_causal(call.flag("is_causal_mask", false)) {
        call.take("nothing");
        if (call.take("mask")) {
            mask.emplace(call.input(1));
        }
    }

    std::optional<float> scale;
    bool is_causal;
    std::optional<const Tensor> mask;
};

/// "weight", "bias only", "weight,bias", "residual" and the like, in the order of the inputs.
struct Affine {
    explicit Affine(Call& call) {
        call.take(kWideRows);
        std::size_t next = 1;
        if (call.take("bias only")) {
            bias.emplace(call.input(next++));
        }
        for (const char* words : {"weight TILE bias RM", "weight bf16 bias f32"}) {
            if (call.take(words)) {
                weight.emplace(call.input(next++));
                bias.emplace(call.input(next++));
            }
        }
        if (call.take("weight host") || call.take("weight")) {
            weight.emplace(call.input(next++));
        }
        if (call.take("bias")) {
            bias.emplace(call.input(next++));
        }
        if (call.take("residual")) {
            residual.emplace(call.input(next));
        }
    }

    std::optional<const Tensor> weight;
    std::optional<const Tensor> bias;
    std::optional<const Tensor> residual;
};

Results layer_norm(Call& call) {
    const float epsilon = call.number("epsilon").value_or(kEpsilon);
    const Affine affine(call);
    return ttnn::layer_norm(call.input(0), epsilon, affine.weight, affine.bias, affine.residual,
                            call.memory_config());
}

Results batch_norm(Call& call) {
    const Tensor input = call.input(0);
    const bool training = call.take("training");
    const bool with_output = call.take("output=") || call.take("output=f32");
    const bool without_statistics = call.take("no stats");
    const bool mean_only = call.take("mean only");
    for (const char* words :
         {"inference", "mixed dtypes", "with stats", "mean,var,w,b", "mean,var"}) {
        call.take(words);
    }
    std::optional<Tensor> mean;
    std::optional<Tensor> variance;
    if (!without_statistics) {
        mean = call.input(1);
        variance = mean_only ? std::nullopt : call.optional_input(2);
    }
    std::optional<Tensor> output;
    std::optional<Tensor> weight;
    if (with_output) {
        output = call.input(3);
    } else {
        weight = call.optional_input(3);
    }
    return ttnn::batch_norm(input, mean, variance, training, 1e-5F, 0.1F, weight,
                            call.optional_input(4), output);
}

Results group_norm(Call& call) {
    const auto groups = static_cast<int>(call.integer("num_groups").value_or(2));
    const bool by_default = call.take("hs inplace default");
    // The rows are of Python, where a call is in place by default.
    bool in_place = true;
    std::optional<ttnn::CoreGrid> grid;
    for (const std::size_t size : {1U, 2U}) {
        const std::string number = std::to_string(size);
        if (call.take("core_grid " + number + "x" + number)) {
            grid = ttnn::CoreGrid(size, size);
        }
    }
    const bool without_grid = call.take("no core_grid");
    const bool measures_in_place = call.row().variant.find("core_grid") != std::string::npos;
    if (!measures_in_place && !by_default) {
        in_place = false;
    }
    if (const auto value = call.value("inplace")) {
        in_place = *value == "True";
    }
    if (!grid && !without_grid) {
        grid = ttnn::CoreGrid(1, 1);
    }
    std::optional<Tensor> weight;
    std::optional<Tensor> bias;
    std::optional<Tensor> mask;
    if (call.take("weight,bias")) {
        weight = call.input(1);
        bias = call.input(2);
    }
    if (call.take("input_mask")) {
        mask = call.input(1);
    }
    call.take("host");
    const auto dtype = call.dtype();
    const auto layout = call.layout("output_layout");
    return ttnn::group_norm(call.input(0), groups, kEpsilon, mask, weight, bias, std::nullopt,
                            std::nullopt, dtype, grid, in_place, layout);
}

}  // namespace

void add_normalization(Operations& operations) {
    operations["softmax"] = softmax;
    operations["softmax_in_place"] = softmax_in_place;
    operations["scale_mask_softmax"] = [](Call& call) -> Results {
        const ScaleAndMask arguments(call);
        return ttnn::scale_mask_softmax(call.input(0), arguments.scale, arguments.mask,
                                        std::nullopt, arguments.is_causal);
    };
    operations["scale_mask_softmax_in_place"] = [](Call& call) -> Results {
        const ScaleAndMask arguments(call);
        return ttnn::scale_mask_softmax_in_place(call.input(0), arguments.scale, arguments.mask,
                                                 ttnn::SoftmaxDefaultProgramConfig{},
                                                 arguments.is_causal);
    };
    operations["layer_norm"] = layer_norm;
    operations["rms_norm"] = [](Call& call) -> Results {
        const Affine affine(call);
        return ttnn::rms_norm(call.input(0), kEpsilon, affine.weight, affine.bias, affine.residual);
    };
    operations["batch_norm"] = batch_norm;
    operations["group_norm"] = group_norm;
}

}  // namespace rules
