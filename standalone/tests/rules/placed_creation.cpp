// New tensors at the places that the variant gives.

#include "call.hpp"
#include "ttnn/operations/creation/creation.hpp"

namespace rules {

namespace {

constexpr std::size_t kWords = 4;

/// "1x1x256x512 bf16 T hs8x1[32x512]"
struct Target {
    explicit Target(Call& call) {
        const auto words = split(call.rest(), ' ');
        if (words.size() != kWords) {
            throw Unmapped{"the variant does not give a tensor"};
        }
        shape = shape_of(words[0]);
        dtype = dtype_of(words[1]);
        layout = layout_of(words[2]);
        memory_config = placement_of(words[3]);
    }

    Shape shape;
    DataType dtype = DataType::BFLOAT16;
    Layout layout = Layout::TILE;
    MemoryConfig memory_config;
};

Results empty(Call& call) {
    const Target target(call);
    return ttnn::empty(target.shape, target.dtype, target.layout, call.on_device(),
                       target.memory_config);
}

template <typename Function>
Operation like(Function function) {
    return [function](Call& call) -> Results {
        const auto memory_config = call.memory_config();
        return function(call.input(0), memory_config);
    };
}

}  // namespace

void add_placed_creation(Operations& operations) {
    operations["create(empty)"] = empty;
    operations["create(zeros)"] = [](Call& call) -> Results {
        const Target target(call);
        return ttnn::zeros(target.shape, target.dtype, target.layout, *call.on_device(),
                           target.memory_config);
    };
    operations["zeros_like"] = like([](const Tensor& tensor, const auto& memory_config) {
        return ttnn::zeros_like(tensor, std::nullopt, std::nullopt, std::nullopt, memory_config);
    });
    operations["ones_like"] = like([](const Tensor& tensor, const auto& memory_config) {
        return ttnn::ones_like(tensor, std::nullopt, std::nullopt, std::nullopt, memory_config);
    });
    operations["full_like"] = like([](const Tensor& tensor, const auto& memory_config) {
        return ttnn::full_like(tensor, 2.0F, std::nullopt, std::nullopt, std::nullopt,
                               memory_config);
    });
    operations["empty_like"] = like([](const Tensor& tensor, const auto& memory_config) {
        return ttnn::empty_like(tensor, std::nullopt, std::nullopt, std::nullopt, memory_config);
    });
}

}  // namespace rules
