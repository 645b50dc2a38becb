// Order, indices and tables.

#include "call.hpp"
#include "ttnn/operations/data_movement/gather/gather.hpp"
#include "ttnn/operations/data_movement/scatter/scatter.hpp"
#include "ttnn/operations/data_movement/sort/sort.hpp"
#include "ttnn/operations/embedding/embedding.hpp"
#include "ttnn/operations/reduction/topk/topk.hpp"

namespace rules {

namespace {

/// Another tensor of the first input's shape and layout.
Tensor beside(Call& call, const std::string& dtype) {
    Input input = call.row().inputs[0];
    input.dtype = dtype;
    return make_tensor(input, call.on_device());
}

Results topk(Call& call) {
    call.take(kWideRows);
    call.take("no dim");
    const auto k = static_cast<std::uint32_t>(call.integer("k").value_or(32));
    const auto dim = static_cast<std::int8_t>(call.integer("dim").value_or(-1));
    const bool largest = call.flag("largest", true);
    const bool sorted = call.flag("sorted", true);
    std::optional<Tensor> indices;
    if (call.take("indices_tensor")) {
        indices = call.input(1);
    }
    return ttnn::topk(call.input(0), k, dim, largest, sorted, std::nullopt, std::nullopt, indices);
}

Results sort(Call& call) {
    call.take(kWideRows);
    const auto dim = static_cast<std::int8_t>(call.integer("dim").value_or(-1));
    const bool descending = call.flag("descending", false);
    const bool stable = call.flag("stable", false);
    if (call.take("out=(values,indices)")) {
        Tensor values = call.input(1);
        Tensor indices = call.input(2);
        return ttnn::sort(call.input(0), dim, descending, stable, std::nullopt,
                          std::tuple<Tensor&, Tensor&>(values, indices));
    }
    return ttnn::sort(call.input(0), dim, descending, stable);
}

Results gather(Call& call) {
    if (call.take(kWideRows)) {
        return ttnn::gather(call.input(0), -1, beside(call, "u32"), false, std::nullopt);
    }
    const auto dim = static_cast<std::int8_t>(call.integer("dim").value_or(-1));
    const bool sparse = call.flag("sparse_grad", false);
    std::optional<Tensor> output;
    if (call.take("out=")) {
        output = call.input(2);
    }
    return ttnn::gather(call.input(0), dim, call.input(1), sparse, call.memory_config(), output);
}

Results scatter(Call& call) {
    if (call.take(kWideRows)) {
        return ttnn::scatter(call.input(0), -1, beside(call, "i32"), call.input(0));
    }
    call.take("src shape");
    std::optional<std::string> reduction = call.value("reduce");
    if (reduction) {
        reduction = reduction->substr(1, reduction->size() - 2);
    }
    const auto dim = static_cast<std::int32_t>(call.integer("dim").value_or(-1));
    return ttnn::scatter(call.input(0), dim, call.input(1), call.input(2), std::nullopt, reduction);
}

Results embedding(Call& call) {
    using ttnn::prim::EmbeddingsType;
    if (call.take(kWideRows)) {
        return ttnn::embedding(make_tensor({"1x32", "u32", "R", "dram"}, call.on_device()),
                               call.input(0));
    }
    EmbeddingsType type = EmbeddingsType::GENERIC;
    type = call.take("PADDED") ? EmbeddingsType::PADDED : type;
    type = call.take("BINARY") ? EmbeddingsType::BINARY : type;
    call.take("no idx");
    std::optional<int> padding;
    if (const auto index = call.integer("padding_idx")) {
        padding = static_cast<int>(*index);
    }
    std::optional<Tensor> output;
    if (call.take("output_tensor")) {
        output = call.input(2);
    }
    const auto layout = call.layout();
    const std::optional<const DataType> dtype(call.dtype());
    return ttnn::embedding(call.input(0), call.input(1), padding, layout, type, dtype,
                           call.memory_config(), output);
}

}  // namespace

void add_indexing(Operations& operations) {
    operations["topk"] = topk;
    operations["sort"] = sort;
    operations["gather"] = gather;
    operations["scatter"] = scatter;
    operations["scatter_add"] = [](Call& call) -> Results {
        const auto dim = static_cast<std::int32_t>(*call.integer("dim"));
        return ttnn::scatter_add(call.input(0), dim, call.input(1), call.input(2));
    };
    operations["embedding"] = embedding;
}

}  // namespace rules
