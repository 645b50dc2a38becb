// Softmax, normalisations and reductions of placed tensors.

#include <regex>

#include "call.hpp"
#include "ttnn/operations/normalization/layernorm/layernorm.hpp"
#include "ttnn/operations/normalization/rmsnorm/rmsnorm.hpp"
#include "ttnn/operations/normalization/softmax/softmax.hpp"
#include "ttnn/operations/reduction/accumulation/cumsum/cumsum.hpp"
#include "ttnn/operations/reduction/argmax/argmax.hpp"
#include "ttnn/operations/reduction/generic/generic_reductions.hpp"
#include "ttnn/operations/reduction/prod/prod.hpp"
#include "ttnn/operations/reduction/topk/topk.hpp"
#include "wrap.hpp"

namespace rules {

namespace {

constexpr float kEpsilon = 1e-12F;

/// "Sharded(grid=8x1,sub_w=2,bh=1,bw=16,inplace=False)"
struct ShardedProgram {
    static std::optional<ShardedProgram> take(Call& call) {
        static const std::regex form(
            R"(Sharded\((?:grid=)?(\d+)x(\d+),sub_w=(\d+),bh=(\d+),bw=(\d+)(?:,inplace=(\w+))?\))");
        const std::string variant = call.row().variant;
        std::smatch found;
        if (!std::regex_search(variant, found, form)) {
            return std::nullopt;
        }
        call.take(found[0].str());
        const auto number = [&found](std::size_t i) { return std::stoul(found[i].str()); };
        return ShardedProgram{
            {number(1), number(2)}, number(3), number(4), number(5), found[6].str() == "True"};
    }

    tt::tt_metal::CoreCoord grid;
    std::size_t subblock_w;
    std::size_t block_h;
    std::size_t block_w;
    bool in_place;
};

std::optional<const ttnn::DeviceComputeKernelConfig> take_compute_config(Call& call) {
    static const std::map<std::string, std::pair<bool, bool>> words{
        {"fp32acc+fullsync", {true, true}}, {"fp32acc", {true, false}},
        {"HiFi4+l1acc", {false, false}},    {"HiFi2+l1acc", {false, false}},
        {"HiFi4", {false, false}},
    };
    for (const auto& [name, flags] : words) {
        if (call.take(name)) {
            ttnn::DeviceComputeKernelConfig config;
            std::tie(config.fp32_dest_acc_en, config.dst_full_sync_en) = flags;
            return std::optional<const ttnn::DeviceComputeKernelConfig>(config);
        }
    }
    return std::nullopt;
}

std::optional<const ttnn::prim::LayerNormProgramConfig> layer_norm_program(
    const std::optional<ShardedProgram>& program) {
    if (!program) {
        return std::nullopt;
    }
    ttnn::prim::LayerNormShardedMultiCoreProgramConfig config;
    config.compute_with_storage_grid_size = program->grid;
    config.subblock_w = program->subblock_w;
    config.block_h = program->block_h;
    config.block_w = program->block_w;
    config.inplace = program->in_place;
    return std::optional<const ttnn::prim::LayerNormProgramConfig>(config);
}

template <typename Function>
Operation normalisation(Function function) {
    return [function](Call& call) -> Results {
        const auto resident = call.take_resident();
        const auto program = ShardedProgram::take(call);
        const auto compute = take_compute_config(call);
        const auto memory_config = call.memory_config();
        call.take("size");
        std::optional<const Tensor> weight;
        std::optional<const Tensor> bias;
        std::optional<const Tensor> residual;
        if (call.take("weight+bias")) {
            weight.emplace(call.input(1));
            bias.emplace(call.input(2));
        } else if (call.take("weight")) {
            weight.emplace(call.input(1));
        } else if (call.take("residual")) {
            residual.emplace(call.input(1));
        }
        return function(call.input(0), kEpsilon, weight, bias, residual, memory_config,
                        layer_norm_program(program), compute);
    };
}

ttnn::SoftmaxProgramConfig softmax_program(const std::optional<ShardedProgram>& program) {
    if (!program) {
        return ttnn::SoftmaxDefaultProgramConfig{};
    }
    ttnn::SoftmaxShardedMultiCoreProgramConfig config;
    config.compute_with_storage_grid_size = program->grid;
    config.subblock_w = program->subblock_w;
    config.block_h = program->block_h;
    config.block_w = program->block_w;
    return config;
}

Results softmax(Call& call) {
    const auto resident = call.take_resident();
    call.take("size");
    const auto dim = static_cast<int>(call.integer("dim").value_or(-1));
    const auto memory_config = call.memory_config();
    return ttnn::softmax(call.input(0), dim, memory_config);
}

Results softmax_in_place(Call& call) {
    const auto program = ShardedProgram::take(call);
    const auto compute = take_compute_config(call);
    return ttnn::softmax_in_place(call.input(0), -1, softmax_program(program), compute);
}

/// "scale=0.125, Sharded(...), is_causal_mask=False"
Results scale_mask_softmax(Call& call, bool in_place) {
    const auto scale = call.number("scale");
    const auto program = ShardedProgram::take(call);
    const bool is_causal = call.flag("is_causal_mask", false);
    const std::optional<const Tensor> mask(call.input(1));
    if (in_place) {
        return ttnn::scale_mask_softmax_in_place(call.input(0), scale, mask,
                                                 softmax_program(program), is_causal);
    }
    return ttnn::scale_mask_softmax(call.input(0), scale, mask, std::nullopt, is_causal);
}

using Dimensions = std::optional<std::variant<int, std::int64_t, ttnn::SmallVector<int>>>;

/// None, -1 or [-2, -1]
Dimensions dimensions_of(const std::string& text) {
    if (text == "None") {
        return std::nullopt;
    }
    ttnn::SmallVector<int> dims;
    for (const std::int64_t dim : numbers_of(text)) {
        dims.push_back(static_cast<int>(dim));
    }
    if (text.front() != '[') {
        return dims[0];
    }
    return dims;
}

/// Rows that name their dimension have it in the name of the operation.
template <typename Function>
void reduction(Operations& operations, const std::string& name, Function function) {
    operations[name] = [function](Call& call) -> Results {
        call.take("size");
        const auto memory_config = call.memory_config();
        const bool keepdim = call.flag("keepdim", false);
        const std::string dim = call.value("dim").value_or("-1");
        return function(call.input(0), dimensions_of(dim), keepdim, memory_config);
    };
    for (const int dim : {-1, -2}) {
        operations[name + " " + std::to_string(dim)] = [function, dim](Call& call) -> Results {
            const auto resident = call.take_resident();
            call.take("size");
            return function(call.input(0), Dimensions(dim), false, std::nullopt);
        };
    }
}

Results argmax(Call& call) {
    const auto resident = call.take_resident();
    call.take("size");
    const auto memory_config = call.memory_config();
    std::optional<int> dim = -1;
    if (const auto text = call.value("dim")) {
        dim = *text == "None" ? std::nullopt : std::optional(std::stoi(*text));
    }
    const bool keepdim = call.take("keepdim");
    const bool multicore = call.take("use_multicore");
    return ttnn::argmax(call.input(0), dim, keepdim, std::nullopt, multicore, memory_config);
}

Results topk(Call& call) {
    const auto resident = call.take_resident();
    call.take("size");
    const auto k = static_cast<std::uint32_t>(call.integer("k").value_or(32));
    const auto memory_config = call.memory_config();
    return ttnn::topk(call.input(0), k, -1, true, true, memory_config);
}

}  // namespace

void add_placed_rows(Operations& operations) {
    operations["layer_norm"] =
        normalisation([](const auto&... arguments) { return ttnn::layer_norm(arguments...); });
    operations["rms_norm"] =
        normalisation([](const auto&... arguments) { return ttnn::rms_norm(arguments...); });
    operations["softmax"] = softmax;
    operations["softmax_in_place"] = softmax_in_place;
    operations["scale_mask_softmax"] = [](Call& call) { return scale_mask_softmax(call, false); };
    operations["scale_mask_softmax_in_place"] = [](Call& call) {
        return scale_mask_softmax(call, true);
    };
    reduction(operations, TTNN(sum));
    reduction(operations, TTNN(mean));
    reduction(operations, TTNN(max));
    reduction(operations, TTNN(min));
    reduction(operations, TTNN(std));
    reduction(operations, TTNN(var));
    operations["prod"] = [](Call& call) -> Results {
        const auto dim = call.integer("dim");
        call.take("dim=None");
        return ttnn::prod(call.input(0), dim, call.flag("keepdim", false));
    };
    operations["cumsum"] = [](Call& call) -> Results {
        const auto dim = static_cast<std::int32_t>(call.integer("dim").value_or(-1));
        return ttnn::cumsum(call.input(0), dim, std::nullopt, false, std::nullopt);
    };
    operations["argmax"] = argmax;
    operations["topk"] = topk;
}

}  // namespace rules
