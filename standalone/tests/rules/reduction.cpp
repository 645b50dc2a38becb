// Reductions and running sums.

#include "call.hpp"
#include "ttnn/operations/reduction/accumulation/cumprod/cumprod.hpp"
#include "ttnn/operations/reduction/accumulation/cumsum/cumsum.hpp"
#include "ttnn/operations/reduction/argmax/argmax.hpp"
#include "ttnn/operations/reduction/generic/generic_reductions.hpp"
#include "ttnn/operations/reduction/prod/prod.hpp"
#include "wrap.hpp"

namespace rules {

namespace {

using Dimensions = std::optional<std::variant<int, std::int64_t, ttnn::SmallVector<int>>>;

/// dim=None, dim=1, dim=(0, 1) or dim=[]
Dimensions dimensions_of(const std::string& text) {
    if (text == "None") {
        return std::nullopt;
    }
    if (text.front() != '(' && text.front() != '[') {
        return std::stoi(text);
    }
    ttnn::SmallVector<int> dims;
    for (const std::int64_t dim : numbers_of(text)) {
        dims.push_back(static_cast<int>(dim));
    }
    return dims;
}

template <typename Function>
void reduction(Operations& operations, const char* name, Function function) {
    operations[name] = [function](Call& call) -> Results {
        const bool is_wide = call.take(kWideRows);
        call.take("dim -1 keepdim");
        call.take("hs");
        const std::string dim = call.value("dim").value_or("-1");
        const bool keepdim = call.flag("keepdim", !is_wide);
        const float scalar = call.number("scalar").value_or(1.0F);
        return function(call.input(0), dimensions_of(dim), keepdim, call.memory_config(),
                        std::nullopt, scalar);
    };
}

Results product(Call& call) {
    if (call.take("NC output, dims=[0,1]")) {
        throw Unmapped{"the CPU backend has no prod of several dimensions"};
    }
    const auto dim = call.integer("dim");
    return ttnn::prod(call.input(0), dim, call.flag("keepdim", false));
}

Results argmax(Call& call) {
    const bool is_wide = call.take(kWideRows);
    std::optional<int> dim;
    if (const auto position = call.value("dim"); position && *position != "None") {
        dim = std::stoi(*position);
    } else if (!position && is_wide) {
        dim = -1;
    }
    std::optional<Tensor> output;
    if (call.take("output_tensor")) {
        output = call.input(1);
    }
    const bool keepdim = call.flag("keepdim", false);
    const bool multicore = call.flag("use_multicore", false);
    const auto memory_config = call.memory_config();
    const bool needs_dim = multicore || memory_config.has_value();
    return ttnn::argmax(call.input(0), needs_dim ? std::optional(-1) : dim, keepdim, std::nullopt,
                        multicore, memory_config, output);
}

template <typename Function>
void running(Operations& operations, const char* name, Function function) {
    operations[name] = [function](Call& call) -> Results {
        const bool is_wide = call.take(kWideRows);
        const auto dim = static_cast<std::int32_t>(call.integer("dim").value_or(is_wide ? -1 : 0));
        std::optional<Tensor> output;
        if (call.take("out=")) {
            output = call.input(1);
        }
        const auto dtype = call.dtype();
        const bool reverse = call.flag("reverse_order", false);
        return function(call.input(0), dim, dtype, reverse, output);
    };
}

}  // namespace

void add_reduction(Operations& operations) {
    reduction(operations, TTNN(sum));
    reduction(operations, TTNN(mean));
    reduction(operations, TTNN(max));
    reduction(operations, TTNN(min));
    reduction(operations, TTNN(std));
    reduction(operations, TTNN(var));
    running(operations, TTNN(cumsum));
    running(operations, TTNN(cumprod));
    operations["prod"] = product;
    operations["argmax"] = argmax;
}

}  // namespace rules
