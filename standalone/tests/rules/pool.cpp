// Pooling and upsampling.

#include <array>
#include <regex>

#include "call.hpp"
#include "ttnn/operations/experimental/adaptive_pool/adaptive_pools.hpp"
#include "ttnn/operations/pool/generic/generic_pools.hpp"
#include "ttnn/operations/pool/global_avg_pool/global_avg_pool.hpp"
#include "ttnn/operations/pool/upsample/upsample.hpp"

namespace rules {

namespace {

using tt::tt_metal::TensorMemoryLayout;
using Pair = std::array<std::uint32_t, 2>;
using Padding = std::variant<Pair, std::array<std::uint32_t, 4>>;

Pair pair_of(const std::vector<std::int64_t>& numbers) {
    const std::int64_t second = numbers.size() > 1 ? numbers[1] : numbers.at(0);
    return {static_cast<std::uint32_t>(numbers.at(0)), static_cast<std::uint32_t>(second)};
}

/// The window of a pool: "k3 s2 p1" or "k=(3,3) s=(2,2) p=(0,1,0,1) ceil=True".
struct Window {
    explicit Window(Call& call) {
        kernel = read(call, "k", {2, 2});
        stride = read(call, "s", {2, 2});
        dilation = read(call, "d", {1, 1});
        if (const auto text = call.value("p")) {
            const auto numbers = numbers_of(*text);
            for (const std::int64_t number : numbers) {
                if (number < 0) {
                    throw Unmapped{"a negative padding"};
                }
            }
            if (numbers.size() == 4) {
                std::array<std::uint32_t, 4> sides{};
                for (std::size_t i = 0; i < sides.size(); ++i) {
                    sides[i] = static_cast<std::uint32_t>(numbers[i]);
                }
                padding = sides;
            } else {
                padding = pair_of(numbers);
            }
        } else if (call.take("p1")) {
            padding = Pair{1, 1};
        }
        ceil = call.flag("ceil", false);
    }

    static Pair read(Call& call, const std::string& key, Pair otherwise) {
        if (const auto text = call.value(key)) {
            return pair_of(numbers_of(*text));
        }
        for (std::uint32_t number = 1; number < 10; ++number) {
            if (call.take(key + std::to_string(number))) {
                return {number, number};
            }
        }
        return otherwise;
    }

    Pair kernel{};
    Pair stride{};
    Pair dilation{};
    Padding padding = Pair{0, 0};
    bool ceil = false;
};

struct Sizes {
    explicit Sizes(Call& call) {
        const auto number = [&call](const char* key, std::uint32_t otherwise) {
            return static_cast<std::uint32_t>(call.integer(key).value_or(otherwise));
        };
        const std::uint32_t extent = number("H=W", 16);
        batch = number("N", 1);
        height = number("H", extent);
        width = number("W", extent);
        channels = number("C", 32);
    }

    std::uint32_t batch;
    std::uint32_t height;
    std::uint32_t width;
    std::uint32_t channels;
};

std::optional<const TensorMemoryLayout> scheme_of(Call& call) {
    const auto name = call.value("applied_shard_scheme");
    if (!name) {
        return std::nullopt;
    }
    return *name == "HEIGHT_SHARDED"  ? TensorMemoryLayout::HEIGHT_SHARDED
           : *name == "WIDTH_SHARDED" ? TensorMemoryLayout::WIDTH_SHARDED
           : *name == "BLOCK_SHARDED" ? TensorMemoryLayout::BLOCK_SHARDED
                                      : TensorMemoryLayout::INTERLEAVED;
}

Results max_pool2d(Call& call) {
    bool in_dram = false;
    if (call.take("device opened without l1_small_size: k2")) {
        call.use_device_without_l1_small();
    } else if (call.take("device opened without l1_small_size: config_tensor_in_dram")) {
        call.use_device_without_l1_small();
        in_dram = true;
    }
    bool indices = false;
    Layout layout = call.layout("output_layout").value_or(Layout::ROW_MAJOR);
    if (call.take("return_indices")) {
        indices = true;
        layout = call.take("out T") ? Layout::TILE : layout;
        call.take("4D");
    }
    const bool ceil = call.take("ceil");
    const bool is_wide = call.take("k9");
    Window window(call);
    if (ceil) {
        window.kernel = {3, 3};
        window.ceil = true;
    }
    if (is_wide) {
        window.kernel = {9, 9};
        window.stride = {1, 1};
        window.padding = Pair{4, 4};
    }
    const Sizes sizes(call);
    call.take("input shape");
    const DataType dtype = call.dtype().value_or(DataType::BFLOAT16);
    const auto scheme = scheme_of(call);
    const bool deallocate = call.flag("deallocate_input", false);
    const std::optional<const MemoryConfig> memory_config(call.memory_config());
    return ttnn::max_pool2d(call.input(0), sizes.batch, sizes.height, sizes.width, sizes.channels,
                            window.kernel, window.stride, window.padding, window.dilation,
                            window.ceil, memory_config, std::nullopt, scheme, deallocate, true,
                            indices, dtype, layout, in_dram);
}

Results avg_pool2d(Call& call) {
    const Window window(call);
    const bool count_padding = call.flag("count_include_pad", true);
    std::optional<std::int32_t> divisor;
    if (const auto number = call.integer("divisor_override")) {
        divisor = static_cast<std::int32_t>(*number);
    }
    const Sizes sizes(call);
    return ttnn::avg_pool2d(call.input(0), sizes.batch, sizes.height, sizes.width, sizes.channels,
                            window.kernel, window.stride, window.padding, window.ceil,
                            count_padding, divisor);
}

Results global_avg_pool2d(Call& call) {
    if (call.take("device opened without l1_small_size:")) {
        call.use_device_without_l1_small();
    }
    return ttnn::global_avg_pool2d(call.input(0), std::nullopt, call.dtype());
}

Pair output_size(Call& call) {
    call.take("out");
    return pair_of(numbers_of(call.rest()));
}

std::variant<int, std::array<int, 2>, float, std::array<float, 2>> scale_of(
    const std::string& text) {
    const bool is_real = text.find('.') != std::string::npos;
    if (!text.starts_with('(')) {
        if (is_real) {
            return std::stof(text);
        }
        return std::stoi(text);
    }
    const auto numbers = split(text.substr(1, text.size() - 2), ',');
    if (numbers.size() != 2 || numbers[1].empty()) {
        throw Unmapped{"not two factors"};
    }
    if (is_real) {
        return std::array<float, 2>{std::stof(numbers[0]), std::stof(numbers[1])};
    }
    return std::array<int, 2>{std::stoi(numbers[0]), std::stoi(numbers[1])};
}

Results upsample(Call& call) {
    std::string mode = call.value("mode").value_or("nearest");
    if (call.take("device opened without l1_small_size: bilinear 2")) {
        call.use_device_without_l1_small();
        mode = "bilinear";
    }
    call.take("nearest");
    if (call.take("bilinear")) {
        mode = "bilinear";
    }
    const auto scale = scale_of(call.value("scale").value_or("2"));
    return ttnn::upsample(call.input(0), scale, mode, call.memory_config());
}

}  // namespace

void add_pool(Operations& operations) {
    operations["max_pool2d"] = max_pool2d;
    operations["avg_pool2d"] = avg_pool2d;
    operations["global_avg_pool2d"] = global_avg_pool2d;
    operations["upsample"] = upsample;
    operations["adaptive_avg_pool2d"] = [](Call& call) -> Results {
        const Pair size = output_size(call);
        return ttnn::adaptive_avg_pool2d(call.input(0), 1, 16, 16, 32, size);
    };
    operations["adaptive_max_pool2d"] = [](Call& call) -> Results {
        const Pair size = output_size(call);
        return ttnn::adaptive_max_pool2d(call.input(0), 1, 16, 16, 32, size);
    };
}

}  // namespace rules
