// Shapes and positions of elements of placed tensors.

#include "call.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/data_movement/chunk/chunk.hpp"
#include "ttnn/operations/data_movement/concat/concat.hpp"
#include "ttnn/operations/data_movement/expand/expand.hpp"
#include "ttnn/operations/data_movement/gather/gather.hpp"
#include "ttnn/operations/data_movement/pad/pad.hpp"
#include "ttnn/operations/data_movement/permute/permute.hpp"
#include "ttnn/operations/data_movement/repeat/repeat.hpp"
#include "ttnn/operations/data_movement/repeat_interleave/repeat_interleave.hpp"
#include "ttnn/operations/data_movement/slice/slice.hpp"
#include "ttnn/operations/data_movement/sort/sort.hpp"
#include "ttnn/operations/data_movement/split/split.hpp"
#include "ttnn/operations/data_movement/squeeze/squeeze.hpp"
#include "ttnn/operations/data_movement/stack/stack.hpp"
#include "ttnn/operations/data_movement/transpose/transpose.hpp"
#include "ttnn/operations/data_movement/unsqueeze/unsqueeze.hpp"
#include "ttnn/operations/embedding/embedding.hpp"

namespace rules {

namespace {

using Positions = ttnn::SmallVector<std::int32_t>;

Positions positions_of(const std::string& text) {
    Positions positions;
    for (const std::int64_t number : numbers_of(text)) {
        positions.push_back(static_cast<std::int32_t>(number));
    }
    return positions;
}

Results reshape(Call& call) {
    if (call.take_resident() || call.take("size")) {
        throw Unmapped{"the row does not give the shape"};
    }
    const auto memory_config = call.memory_config();
    const Positions sizes = positions_of(call.rest());
    return ttnn::reshape(call.input(0), ttsl::Span<const std::int32_t>(sizes.data(), sizes.size()),
                         memory_config);
}

Results permute(Call& call) {
    if (call.take_resident()) {
        throw Unmapped{"the row does not give the order"};
    }
    const auto memory_config = call.memory_config();
    ttnn::SmallVector<std::int64_t> dims;
    for (const std::int64_t dim : numbers_of(call.rest())) {
        dims.push_back(dim);
    }
    return ttnn::permute(call.input(0), dims, memory_config);
}

Results transpose(Call& call) {
    const auto memory_config = call.memory_config();
    const bool last = call.take("size") || call.unread().empty();
    const auto dims = last ? std::vector<std::int64_t>{-2, -1} : numbers_of(call.rest());
    return ttnn::transpose(call.input(0), dims.at(0), dims.at(1), memory_config);
}

Results concat(Call& call) {
    const auto memory_config = call.memory_config();
    if (const auto resident = call.take_resident(); resident || call.take("size")) {
        throw Unmapped{"the row does not give the dimension"};
    }
    const auto groups = call.integer("groups").value_or(1);
    const auto count = static_cast<std::size_t>(call.integer("n").value_or(2));
    const auto dim = static_cast<int>(call.integer("dim").value_or(0));
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < count; ++i) {
        tensors.push_back(call.input(i));
    }
    return ttnn::concat(tensors, dim, memory_config, std::nullopt,
                        static_cast<unsigned int>(groups));
}

/// "[..,0:128,:]", "[0, 0, 0, 0]:[1, 1, 64, 64]" or "step 2"
Results slice(Call& call) {
    const auto memory_config = call.memory_config();
    const Tensor input = call.input(0);
    const auto rank = static_cast<std::int32_t>(input.logical_shape().rank());
    Positions begins(static_cast<std::size_t>(rank), 0);
    Positions ends(static_cast<std::size_t>(rank), 0);
    Positions steps(static_cast<std::size_t>(rank), 1);
    for (std::int32_t i = 0; i < rank; ++i) {
        ends[i] = static_cast<std::int32_t>(input.logical_shape()[i]);
    }
    if (call.take("size")) {
        throw Unmapped{"the row does not give the slice"};
    }
    std::string text = call.rest();
    text = text.substr(0, text.find(" of "));
    if (text.starts_with("step")) {
        steps[rank - 2] = static_cast<std::int32_t>(numbers_of(text).at(0));
    } else if (text.starts_with("[..")) {
        const auto words = split(text.substr(1, text.find(']') - 1), ',');
        for (std::size_t i = 1; i < words.size(); ++i) {
            const auto bounds = numbers_of(words[i]);
            if (bounds.size() == 2) {
                const auto dim = static_cast<std::size_t>(rank) - words.size() + i;
                begins[dim] = static_cast<std::int32_t>(bounds[0]);
                ends[dim] = static_cast<std::int32_t>(bounds[1]);
            }
        }
    } else {
        const std::size_t middle = text.find("]:[");
        begins = positions_of(text.substr(0, middle));
        ends = positions_of(text.substr(middle + 2));
    }
    return ttnn::slice<std::int32_t>(input, begins, ends, steps, memory_config);
}

/// "(0,0),(0,0),(0,32),(0,0)" or "(..,(0,32),(0,0))"
Results pad(Call& call) {
    const auto memory_config = call.memory_config();
    if (call.take("size")) {
        throw Unmapped{"the row does not give the widths"};
    }
    const auto numbers = numbers_of(call.rest());
    ttnn::SmallVector<std::array<std::uint32_t, 2>> widths;
    for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) {
        widths.push_back(
            {static_cast<std::uint32_t>(numbers[i]), static_cast<std::uint32_t>(numbers[i + 1])});
    }
    return ttnn::pad(call.input(0), widths, 0.0F, true, memory_config);
}

Results repeat(Call& call) {
    const auto memory_config = call.memory_config();
    if (call.take("size")) {
        throw Unmapped{"the row does not give the counts"};
    }
    ttnn::SmallVector<std::uint32_t> times;
    for (const std::int64_t number : numbers_of(call.rest())) {
        times.push_back(static_cast<std::uint32_t>(number));
    }
    return ttnn::repeat(call.input(0), times, memory_config);
}

Results repeat_interleave(Call& call) {
    const auto memory_config = call.memory_config();
    const auto dim = static_cast<std::int32_t>(call.integer("dim").value());
    const auto times = static_cast<std::uint32_t>(numbers_of(call.rest()).at(0));
    return ttnn::repeat_interleave(call.input(0), times, dim, memory_config);
}

Results embedding(Call& call) {
    const auto memory_config = call.memory_config();
    const std::optional<Layout> layout = call.layout();
    call.take("index TILE");
    call.take("size");
    return ttnn::embedding(call.input(0), call.input(1), std::nullopt, layout,
                           ttnn::prim::EmbeddingsType::GENERIC, std::nullopt, memory_config);
}

void add_views(Operations& operations) {
    operations["unsqueeze_to_4D"] = [](Call& call) -> Results {
        return ttnn::unsqueeze_to_4D(call.input(0));
    };
    operations["unsqueeze(0)"] = [](Call& call) -> Results {
        return ttnn::unsqueeze(call.input(0), 0);
    };
    operations["squeeze(0)"] = [](Call& call) -> Results {
        return ttnn::squeeze(call.input(0), 0);
    };
    operations["expand"] = [](Call& call) -> Results {
        const Positions sizes{2, -1, -1, -1};
        return ttnn::expand(call.input(0),
                            ttsl::Span<const std::int32_t>(sizes.data(), sizes.size()));
    };
    operations["split(128,2)"] = [](Call& call) -> Results {
        return ttnn::split(call.input(0), 128, 2);
    };
    operations["split(128,3)"] = [](Call& call) -> Results {
        return ttnn::split(call.input(0), 128, 3);
    };
    operations["chunk(2,2)"] = [](Call& call) -> Results {
        return ttnn::chunk(call.input(0), 2, 2);
    };
    operations["stack"] = [](Call& call) -> Results {
        return ttnn::stack({call.input(0), call.input(1)}, 0);
    };
}

}  // namespace

void add_placed_shapes(Operations& operations) {
    add_views(operations);
    operations["reshape"] = reshape;
    operations["permute"] = permute;
    operations["transpose"] = transpose;
    operations["concat"] = concat;
    operations["slice"] = slice;
    operations["pad"] = pad;
    operations["repeat"] = repeat;
    operations["repeat_interleave"] = repeat_interleave;
    operations["embedding"] = embedding;
    operations["gather"] = [](Call& call) -> Results {
        const auto dim = static_cast<std::int8_t>(call.integer("dim").value_or(-1));
        return ttnn::gather(call.input(0), dim, call.input(1), false, std::nullopt);
    };
    operations["sort"] = [](Call& call) -> Results {
        call.take("size");
        const auto dim = static_cast<std::int8_t>(call.integer("dim").value_or(-1));
        return ttnn::sort(call.input(0), dim, false, false);
    };
}

}  // namespace rules
