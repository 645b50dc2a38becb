// Convolutions.

#include <array>
#include <cmath>

#include "call.hpp"
#include "ttnn/operations/conv/conv1d/conv1d.hpp"
#include "ttnn/operations/conv/conv2d/conv2d.hpp"
#include "ttnn/operations/conv/conv_transpose2d/conv_transpose2d.hpp"

namespace rules {

namespace {

using Pair = std::array<std::uint32_t, 2>;
using Padding = std::variant<Pair, std::array<std::uint32_t, 4>>;

constexpr std::uint32_t kExtent = 16;

Pair pair_of(const std::string& text) {
    const auto numbers = numbers_of(text);
    return {static_cast<std::uint32_t>(numbers.at(0)), static_cast<std::uint32_t>(numbers.at(1))};
}

Padding padding_of(const std::string& text) {
    const auto numbers = numbers_of(text);
    if (numbers.size() == 2) {
        return pair_of(text);
    }
    std::array<std::uint32_t, 4> sides{};
    for (std::size_t i = 0; i < sides.size(); ++i) {
        sides[i] = static_cast<std::uint32_t>(numbers.at(i));
    }
    return sides;
}

/// The window of a variant; by default 3x3 with a padding of 1.
struct Window {
    explicit Window(Call& call) {
        if (call.take("device opened without l1_small_size: 3x3")) {
            call.use_device_without_l1_small();
        }
        if (call.take("device opened without l1_small_size: 1x1")) {
            call.use_device_without_l1_small();
            kernel = {1, 1};
            padding = Pair{0, 0};
        }
        if (const auto text = call.value("k")) {
            kernel = pair_of(*text);
        }
        if (const auto text = call.value("s")) {
            stride = pair_of(*text);
        }
        if (const auto text = call.value("p")) {
            padding = padding_of(*text);
        }
        if (const auto text = call.value("d")) {
            dilation = pair_of(*text);
        }
        for (const char* words : {"3x3", "p1", "in=out=32", "3x3"}) {
            call.take(words);
        }
    }

    Pair kernel{3, 3};
    Pair stride{1, 1};
    Padding padding = Pair{1, 1};
    Pair dilation{1, 1};
};

/// Channels, batch and extent.
struct Sizes {
    explicit Sizes(Call& call, std::uint32_t out_channels_) : out_channels(out_channels_) {
        const auto number = [&call](const char* key, std::uint32_t otherwise) {
            return static_cast<std::uint32_t>(call.integer(key).value_or(otherwise));
        };
        if (const auto both = call.value("ci=co")) {
            in_channels = out_channels = static_cast<std::uint32_t>(std::stoul(*both));
        }
        in_channels = number("ci", number("in_channels", in_channels));
        out_channels = number("co", out_channels);
        batch = number("n", number("N", 1));
        extent = number("H=W", kExtent);
        groups = number("groups", 1);
    }

    std::uint32_t in_channels = 32;
    std::uint32_t out_channels;
    std::uint32_t batch = 1;
    std::uint32_t extent = kExtent;
    std::uint32_t groups = 1;
};

struct Returns {
    explicit Returns(Call& call) {
        const bool all = call.take("return all");
        output_dim = call.flag("return_output_dim", all || call.take("return_output_dim"));
        weights_and_bias = call.flag("return_weights_and_bias", all);
    }

    bool output_dim = false;
    bool weights_and_bias = false;
};

void set_shards(Call& call, ttnn::Conv2dConfig& config) {
    using tt::tt_metal::TensorMemoryLayout;
    if (call.take("shard HS")) {
        config.shard_layout = TensorMemoryLayout::HEIGHT_SHARDED;
    } else if (call.take("shard WS")) {
        config.shard_layout = TensorMemoryLayout::WIDTH_SHARDED;
    } else if (call.take("shard BS")) {
        config.shard_layout = TensorMemoryLayout::BLOCK_SHARDED;
    }
}

std::optional<const ttnn::Conv2dConfig> config_of(Call& call) {
    ttnn::Conv2dConfig config;
    if (const auto dtype = call.dtype("conv_config.weights_dtype")) {
        config.weights_dtype = *dtype;
        return config;
    }
    if (!call.take("conv_config")) {
        if (!call.take("config_tensors_in_dram")) {
            return std::nullopt;
        }
        config.config_tensors_in_dram = true;
        return config;
    }
    if (const auto name = call.value("activation")) {
        if (name->ends_with("(str)")) {
            throw Unmapped{"an activation by its name"};
        }
        config.activation =
            ttnn::operations::unary::UnaryWithParam(ttnn::operations::unary::UnaryOpType::RELU);
    }
    set_shards(call, config);
    config.output_layout = call.layout("output_layout").value_or(Layout::TILE);
    config.deallocate_activation = call.take("deallocate_activation");
    config.act_block_h_override =
        static_cast<std::uint32_t>(call.integer("act_block_h_override").value_or(0));
    config.config_tensors_in_dram = call.take("config_tensors_in_dram");
    if (call.take("enable_kernel_stride_folding")) {
        config.enable_kernel_stride_folding = true;
    }
    return config;
}

std::optional<const ttnn::Conv2dSliceConfig> slices_of(Call& call) {
    using SliceType = ttnn::Conv2dSliceConfig::SliceType;
    const auto name = call.value("slice_config");
    if (!name) {
        return std::nullopt;
    }
    ttnn::Conv2dSliceConfig config;
    config.slice_type = *name == "L1Full"                      ? SliceType::L1_FULL
                        : name->starts_with("DRAMSliceHeight") ? SliceType::DRAM_HEIGHT
                                                               : SliceType::DRAM_WIDTH;
    config.num_slices = *name == "L1Full" ? 0 : 2;
    return config;
}

std::optional<const ttnn::DeviceComputeKernelConfig> compute_config_of(Call& call) {
    if (!call.take("compute_config")) {
        return std::nullopt;
    }
    ttnn::DeviceComputeKernelConfig config;
    config.fp32_dest_acc_en = call.flag("fp32_dest_acc_en", false);
    return config;
}

/// Skips remarks on differences of the inputs.
void take_remarks(Call& call) {
    for (const char* words :
         {"bias dtype/layout/storage", "weight dtype/layout/storage", "bias shape", "weight shape",
          "input shape", "weights host f32", "weight (co,ci/g,3,3)", "weight (co,ci,3,3)",
          "weight (ci,co/g,3,3)", "input height-sharded L1", "bias"}) {
        call.take(words);
    }
}

std::optional<const Tensor> bias_of(Call& call) {
    std::optional<const Tensor> bias;
    if (call.inputs() > 2) {
        bias.emplace(call.input(2));
    }
    return bias;
}

struct Append {
    Results& results;

    void operator()(const Tensor& tensor) const { results.add(tensor); }
    void operator()(std::uint32_t number) const { results.add("int", std::to_string(number)); }
    void operator()(const std::optional<Tensor>& tensor) const {
        if (tensor) {
            results.add(*tensor);
        } else {
            results.add_none();
        }
    }
    template <typename... Parts>
    void operator()(const std::tuple<Parts...>& parts) const {
        std::apply([this](const Parts&... part) { ((*this)(part), ...); }, parts);
    }
};

template <typename Variant>
Results flattened(const Variant& result) {
    Results results;
    std::visit(Append{results}, result);
    return results;
}

std::uint32_t size_of(const Call& call, std::size_t input, std::int32_t dim) {
    const Shape shape = shape_of(call.row().inputs.at(input).shape);
    return shape.rank() == 0 ? 0 : shape[dim];
}

Results conv2d(Call& call) {
    const Window window(call);
    Sizes sizes(call, size_of(call, 1, 0));
    if (call.row().variant.starts_with("weight shape")) {
        sizes.out_channels = 32;
    }
    const auto config = config_of(call);
    const auto slices = slices_of(call);
    const auto compute_config = compute_config_of(call);
    const Returns returns(call);
    const auto bias = bias_of(call);
    take_remarks(call);
    const std::optional<const DataType> dtype(call.dtype());
    const std::optional<const MemoryConfig> memory_config(call.memory_config());
    return flattened(ttnn::conv2d(call.input(0), call.input(1), call.on_device(), sizes.in_channels,
                                  sizes.out_channels, sizes.batch, sizes.extent, sizes.extent,
                                  window.kernel, window.stride, window.padding, window.dilation,
                                  sizes.groups, dtype, bias, config, compute_config, memory_config,
                                  slices, returns.output_dim, returns.weights_and_bias));
}

Results conv_transpose2d(Call& call) {
    Pair output_padding{0, 0};
    if (const auto text = call.value("op")) {
        output_padding = pair_of(*text);
    }
    const Window window(call);
    const Sizes sizes(call, 32);
    const bool mirror = call.flag("mirror_kernel", true);
    const Returns returns(call);
    const auto bias = bias_of(call);
    take_remarks(call);
    const std::optional<const DataType> dtype(call.dtype());
    return flattened(ttnn::conv_transpose2d(
        call.input(0), call.input(1), call.on_device(), sizes.in_channels, sizes.out_channels,
        sizes.batch, sizes.extent, sizes.extent, window.kernel, window.stride, window.padding,
        output_padding, window.dilation, sizes.groups, dtype, bias, std::nullopt, std::nullopt,
        std::nullopt, std::nullopt, mirror, returns.output_dim, returns.weights_and_bias));
}

Results conv1d(Call& call) {
    const auto number = [&call](const char* key, std::uint32_t otherwise) {
        return static_cast<std::uint32_t>(call.integer(key).value_or(otherwise));
    };
    std::variant<Pair, std::uint32_t> padding = std::uint32_t{1};
    if (const auto text = call.value("p")) {
        if (text->starts_with('(')) {
            padding = pair_of(*text);
        } else {
            padding = static_cast<std::uint32_t>(std::stoul(*text));
        }
    }
    for (const char* words : {"k3", "p1"}) {
        call.take(words);
    }
    const std::uint32_t kernel = number("k", 3);
    const std::uint32_t stride = number("s", 1);
    const std::uint32_t dilation = number("d", 1);
    const std::uint32_t groups = number("g", 1);
    const std::uint32_t batch = number("N", 1);
    const std::uint32_t length = number("L", 64);
    const Returns returns(call);
    const auto bias = bias_of(call);
    take_remarks(call);
    return flattened(ttnn::conv1d(call.input(0), call.input(1), call.on_device(), 32, 32, batch,
                                  length, kernel, stride, padding, dilation, groups, std::nullopt,
                                  bias, std::nullopt, std::nullopt, std::nullopt,
                                  returns.output_dim, returns.weights_and_bias));
}

}  // namespace

void add_convolution(Operations& operations) {
    operations["conv2d"] = conv2d;
    operations["conv1d"] = conv1d;
    operations["conv_transpose2d"] = conv_transpose2d;
}

}  // namespace rules
