// Shapes and positions of elements.

#include "call.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/data_movement/chunk/chunk.hpp"
#include "ttnn/operations/data_movement/concat/concat.hpp"
#include "ttnn/operations/data_movement/expand/expand.hpp"
#include "ttnn/operations/data_movement/pad/pad.hpp"
#include "ttnn/operations/data_movement/permute/permute.hpp"
#include "ttnn/operations/data_movement/repeat/repeat.hpp"
#include "ttnn/operations/data_movement/repeat_interleave/repeat_interleave.hpp"
#include "ttnn/operations/data_movement/roll/roll.hpp"
#include "ttnn/operations/data_movement/slice/slice.hpp"
#include "ttnn/operations/data_movement/split/split.hpp"
#include "ttnn/operations/data_movement/squeeze/squeeze.hpp"
#include "ttnn/operations/data_movement/stack/stack.hpp"
#include "ttnn/operations/data_movement/transpose/transpose.hpp"
#include "ttnn/operations/data_movement/unsqueeze/unsqueeze.hpp"
#include "ttnn/operations/data_movement/view/view.hpp"

namespace rules {

namespace {

ttnn::SmallVector<std::int32_t> sizes_of(const std::string& text) {
    ttnn::SmallVector<std::int32_t> sizes;
    for (const std::string& size : split(text, 'x')) {
        sizes.push_back(static_cast<std::int32_t>(std::stoi(size)));
    }
    return sizes;
}

ttsl::Span<const std::int32_t> span_of(const ttnn::SmallVector<std::int32_t>& sizes) {
    return {sizes.data(), sizes.size()};
}

Results reshape(Call& call) {
    const Tensor input = call.input(0);
    if (call.take(kWideRows)) {
        const std::uint32_t width = input.logical_shape()[1];
        return ttnn::reshape(input, Shape{16, 2 * width});
    }
    if (call.take("logical 20x40 padded 32x64")) {
        throw Unmapped{"the CPU backend has no reshape with a padded shape"};
    }
    call.take("view");
    const auto memory_config = call.memory_config();
    std::string text = call.rest();
    text = text.substr(text.find("to") + 2);
    const std::size_t begin = text.find_first_not_of(' ');
    const std::size_t end = text.find_last_not_of(' ');
    const auto sizes =
        sizes_of(begin == std::string::npos ? "" : text.substr(begin, end + 1 - begin));
    return ttnn::reshape(input, span_of(sizes), memory_config);
}

Results permute(Call& call) {
    ttnn::SmallVector<std::int64_t> dims;
    const auto memory_config = call.memory_config();
    const float pad_value = call.number("pad_value").value_or(0.0F);
    for (const std::int64_t dim : numbers_of(call.take(kWideRows) ? "1,0" : call.rest())) {
        dims.push_back(dim);
    }
    return ttnn::permute(call.input(0), dims, memory_config, pad_value);
}

Results transpose(Call& call) {
    const auto dims = numbers_of(call.take(kWideRows) ? "0,1" : call.rest());
    return ttnn::transpose(call.input(0), dims.at(0), dims.at(1), std::nullopt);
}

Results concat(Call& call) {
    auto tensors = call.all_inputs();
    if (call.take(kWideRows)) {
        tensors.push_back(tensors.front());
    }
    call.take("no dim");
    const auto dim = static_cast<int>(call.integer("dim").value_or(0));
    return ttnn::concat(tensors, dim, call.memory_config());
}

/// "(0,0)..(32,32)step(1,2)"
Results slice_of_numbers(Call& call, const std::optional<MemoryConfig>& memory_config) {
    using Positions = ttnn::SmallVector<std::int32_t>;
    const std::string text = call.rest();
    const auto positions = [](const std::string& numbers) {
        Positions found;
        for (const std::int64_t number : numbers_of(numbers)) {
            found.push_back(static_cast<std::int32_t>(number));
        }
        return found;
    };
    const std::size_t dots = text.find("..");
    const std::size_t step = text.find("step");
    const Positions begins = positions(text.substr(0, dots));
    const Positions ends = positions(text.substr(dots + 2, step - dots - 2));
    Positions steps = step == std::string::npos ? Positions() : positions(text.substr(step));
    if (steps.empty()) {
        steps = Positions(begins.size(), 1);
    }
    return ttnn::slice<std::int32_t>(call.input(0), begins, ends, steps, memory_config);
}

Results slice(Call& call) {
    using Positions = ttnn::SmallVector<std::int32_t>;
    const Tensor input = call.input(0);
    const auto memory_config = call.memory_config();
    const auto extent = [&input](std::int32_t i) {
        return static_cast<std::int32_t>(input.logical_shape()[i]);
    };
    if (call.take(kWideRows)) {
        return ttnn::slice<std::int32_t>(input, Positions{0, 0}, Positions{16, extent(1)},
                                         Positions{1, 1});
    }
    if (call.take("full")) {
        return ttnn::slice<std::int32_t>(input, Positions{0, 0}, Positions{extent(0), extent(1)},
                                         Positions{1, 1}, memory_config);
    }
    if (call.take("tensor begins/ends")) {
        const auto number = [&call](const char* key) {
            const auto value = call.integer(key);
            return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
        };
        const auto dim = number("slice_dim");
        const auto devices = number("num_devices");
        return ttnn::slice<std::uint32_t>(input, call.input(1), call.input(2), std::nullopt,
                                          std::nullopt, std::nullopt, std::nullopt, dim, devices);
    }
    std::optional<Tensor> output;
    if (call.take("output_tensor")) {
        output = call.input(1);
    }
    if (output || memory_config) {
        return ttnn::slice<std::int32_t>(input, Positions{0, 0}, Positions{32, 32}, Positions{1, 1},
                                         memory_config, output);
    }
    return slice_of_numbers(call, memory_config);
}

Results pad(Call& call) {
    const auto value = call.number("value");
    const auto memory_config = call.memory_config();
    const bool multicore = call.flag("use_multicore", true);
    std::vector<std::int64_t> widths{0, 32, 0, 0};
    if (call.take("shape 1x1x64x64 start 0")) {
        widths = {0, 0, 0, 0, 0, 32, 0, 0};
    } else if (call.take(kWideRows)) {
        widths = {0, 1, 0, 0};
    } else if (const std::string text = call.rest(); text.find('[') != std::string::npos) {
        widths = numbers_of(text);
    }
    ttnn::SmallVector<std::array<std::uint32_t, 2>> padding;
    for (std::size_t i = 0; i + 1 < widths.size(); i += 2) {
        if (widths[i] < 0) {
            throw Unmapped{"a negative width"};
        }
        padding.push_back(
            {static_cast<std::uint32_t>(widths[i]), static_cast<std::uint32_t>(widths[i + 1])});
    }
    return ttnn::pad(call.input(0), padding, value.value_or(0.0F), multicore, memory_config);
}

Results repeat(Call& call) {
    ttnn::SmallVector<std::uint32_t> times;
    for (const std::int64_t number : numbers_of(call.take(kWideRows) ? "2,1" : call.rest())) {
        if (number < 0) {
            throw Unmapped{"a negative count"};
        }
        times.push_back(static_cast<std::uint32_t>(number));
    }
    return ttnn::repeat(call.input(0), times);
}

Results repeat_interleave(Call& call) {
    const auto numbers = numbers_of(call.take(kWideRows) ? "2,0" : call.rest());
    return ttnn::repeat_interleave(call.input(0), static_cast<std::uint32_t>(numbers.at(0)),
                                   static_cast<std::int32_t>(numbers.at(1)));
}

Results split_tensor(Call& call) {
    if (call.take("sizes 16,48")) {
        return ttnn::split(call.input(0), ttnn::SmallVector<std::int64_t>{16, 48}, 1);
    }
    const auto dim = call.integer("dim").value_or(0);
    return ttnn::split(call.input(0), numbers_of(call.rest()).at(0), dim);
}

void add_shapes(Operations& operations) {
    operations["reshape"] = reshape;
    operations["view"] = [](Call& call) -> Results {
        call.take("to -1");
        const ttnn::SmallVector<std::int32_t> sizes{-1};
        return ttnn::view(call.input(0), span_of(sizes));
    };
    operations["expand"] = [](Call& call) -> Results {
        const auto sizes = sizes_of(call.rest().substr(3));
        return ttnn::expand(call.input(0), span_of(sizes));
    };
    operations["unsqueeze"] = [](Call& call) -> Results {
        return ttnn::unsqueeze(call.input(0), static_cast<int>(*call.integer("dim")));
    };
    operations["squeeze"] = [](Call& call) -> Results {
        if (call.take("no dim")) {
            return ttnn::squeeze(call.input(0));
        }
        return ttnn::squeeze(call.input(0), static_cast<int>(*call.integer("dim")));
    };
    operations["unsqueeze_to_4D"] = [](Call& call) -> Results {
        return ttnn::unsqueeze_to_4D(call.input(0));
    };
}

}  // namespace

void add_data_movement(Operations& operations) {
    add_shapes(operations);
    operations["permute"] = permute;
    operations["transpose"] = transpose;
    operations["concat"] = concat;
    operations["slice"] = slice;
    operations["pad"] = pad;
    operations["repeat"] = repeat;
    operations["repeat_interleave"] = repeat_interleave;
    operations["split"] = split_tensor;
    operations["chunk"] = [](Call& call) -> Results {
        const auto dim = static_cast<int>(*call.integer("dim"));
        return ttnn::chunk(call.input(0), static_cast<std::uint32_t>(numbers_of(call.rest()).at(0)),
                           dim);
    };
    operations["stack"] = [](Call& call) -> Results {
        return ttnn::stack(call.all_inputs(), static_cast<int>(*call.integer("dim")));
    };
    operations["roll"] = [](Call& call) -> Results {
        call.take("3,dim1");
        return ttnn::roll(call.input(0), 3, 1);
    };
}

}  // namespace rules
