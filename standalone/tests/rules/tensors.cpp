// Shared memory, deallocation and padding.

#include "call.hpp"
#include "ttnn/operations/copy/typecast/typecast.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/data_movement/chunk/chunk.hpp"
#include "ttnn/operations/data_movement/clone/clone.hpp"
#include "ttnn/operations/data_movement/concat/concat.hpp"
#include "ttnn/operations/data_movement/expand/expand.hpp"
#include "ttnn/operations/data_movement/pad/pad.hpp"
#include "ttnn/operations/data_movement/permute/permute.hpp"
#include "ttnn/operations/data_movement/repeat/repeat.hpp"
#include "ttnn/operations/data_movement/repeat_interleave/repeat_interleave.hpp"
#include "ttnn/operations/data_movement/slice/slice.hpp"
#include "ttnn/operations/data_movement/squeeze/squeeze.hpp"
#include "ttnn/operations/data_movement/transpose/transpose.hpp"
#include "ttnn/operations/data_movement/unsqueeze/unsqueeze.hpp"
#include "ttnn/operations/eltwise/binary/binary.hpp"
#include "ttnn/operations/eltwise/ternary/ternary.hpp"
#include "ttnn/operations/eltwise/unary/unary.hpp"
#include "ttnn/operations/embedding/embedding.hpp"
#include "ttnn/operations/matmul/matmul.hpp"
#include "ttnn/operations/normalization/layernorm/layernorm.hpp"
#include "ttnn/operations/normalization/softmax/softmax.hpp"
#include "ttnn/operations/reduction/generic/generic_reductions.hpp"

namespace rules {

namespace {

using Function = std::function<Tensor(const Tensor&)>;
using Positions = ttnn::SmallVector<std::int32_t>;
using Widths = ttnn::SmallVector<std::array<std::uint32_t, 2>>;

Layout other_layout(const Tensor& tensor) {
    return tensor.layout() == Layout::TILE ? Layout::ROW_MAJOR : Layout::TILE;
}

Tensor slice(const Tensor& tensor, std::int32_t end) {
    return ttnn::slice<std::int32_t>(tensor, Positions{0, 0}, Positions{end, end}, Positions{1, 1});
}

/// Calls on a 64x64 tensor that change nothing, or little.
const std::map<std::string, Function>& conversions() {
    static const std::map<std::string, Function> calls{
        {"to_layout same layout", [](const Tensor& t) { return ttnn::to_layout(t, t.layout()); }},
        {"to_layout other layout",
         [](const Tensor& t) { return ttnn::to_layout(t, other_layout(t)); }},
        {"to_memory_config own config",
         [](const Tensor& t) { return ttnn::to_memory_config(t, t.memory_config()); }},
        {"to_memory_config DRAM",
         [](const Tensor& t) { return ttnn::to_memory_config(t, ttnn::DRAM_MEMORY_CONFIG); }},
        {"to_memory_config L1",
         [](const Tensor& t) { return ttnn::to_memory_config(t, ttnn::L1_MEMORY_CONFIG); }},
        {"to_device(memory_config=L1)",
         [](const Tensor& t) { return ttnn::to_device(t, t.device(), ttnn::L1_MEMORY_CONFIG); }},
        {"typecast same dtype", [](const Tensor& t) { return ttnn::typecast(t, t.dtype()); }},
        {"reshape same shape", [](const Tensor& t) { return ttnn::reshape(t, Shape{64, 64}); }},
        {"reshape 1x64x64", [](const Tensor& t) { return ttnn::reshape(t, Shape{1, 64, 64}); }},
        {"reshape 2x32x64", [](const Tensor& t) { return ttnn::reshape(t, Shape{2, 32, 64}); }},
        {"reshape 32x2x64", [](const Tensor& t) { return ttnn::reshape(t, Shape{32, 2, 64}); }},
        {"reshape 32x128", [](const Tensor& t) { return ttnn::reshape(t, Shape{32, 128}); }},
        {"unsqueeze 0", [](const Tensor& t) { return ttnn::unsqueeze(t, 0); }},
        {"permute identity",
         [](const Tensor& t) { return ttnn::permute(t, ttnn::SmallVector<std::int64_t>{0, 1}); }},
        {"transpose 0,0", [](const Tensor& t) { return ttnn::transpose(t, 0, 0); }},
        {"slice full", [](const Tensor& t) { return slice(t, 64); }},
        {"concat single", [](const Tensor& t) { return ttnn::concat({t}, 0); }},
        {"pad zero widths",
         [](const Tensor& t) { return ttnn::pad(t, Widths{{0, 0}, {0, 0}}, 0.0F); }},
        {"repeat (1,1)",
         [](const Tensor& t) { return ttnn::repeat(t, ttnn::SmallVector<std::uint32_t>{1, 1}); }},
        {"repeat_interleave 1", [](const Tensor& t) { return ttnn::repeat_interleave(t, 1, 0); }},
        {"clone",
         [](const Tensor& t) { return ttnn::clone(t, std::nullopt, std::nullopt, std::nullopt); }},
        {"identity", [](const Tensor& t) { return ttnn::identity(t); }},
        {"expand same",
         [](const Tensor& t) {
             const std::array<std::int32_t, 2> sizes{64, 64};
             return ttnn::expand(t, ttsl::Span<const std::int32_t>(sizes.data(), sizes.size()));
         }},
        {"squeeze(no dim)", [](const Tensor& t) { return ttnn::squeeze(t); }},
        {"reallocate", [](const Tensor& t) { return ttnn::reallocate(t, std::nullopt); }},
        {"chunk 1", [](const Tensor& t) { return ttnn::chunk(t, 1, 0).at(0); }},
    };
    return calls;
}

/// Uses of a tensor that has been deallocated.
const std::map<std::string, Function>& uses() {
    static const std::map<std::string, Function> calls{
        {"relu", [](const Tensor& t) { return ttnn::relu(t); }},
        {"add", [](const Tensor& t) { return ttnn::add(t, t); }},
        {"add scalar", [](const Tensor& t) { return ttnn::add(t, 1.0F); }},
        {"matmul", [](const Tensor& t) { return ttnn::matmul(t, t); }},
        {"sum", [](const Tensor& t) { return ttnn::sum(t, -1); }},
        {"softmax", [](const Tensor& t) { return ttnn::softmax(t, -1); }},
        {"reshape", [](const Tensor& t) { return ttnn::reshape(t, Shape{32, 128}); }},
        {"reshape view", [](const Tensor& t) { return ttnn::reshape(t, Shape{1, 64, 64}); }},
        {"permute",
         [](const Tensor& t) { return ttnn::permute(t, ttnn::SmallVector<std::int64_t>{1, 0}); }},
        {"transpose", [](const Tensor& t) { return ttnn::transpose(t, 0, 1); }},
        {"concat", [](const Tensor& t) { return ttnn::concat({t, t}, 0); }},
        {"slice", [](const Tensor& t) { return slice(t, 32); }},
        {"slice full", [](const Tensor& t) { return slice(t, 64); }},
        {"to_layout same", [](const Tensor& t) { return ttnn::to_layout(t, t.layout()); }},
        {"to_layout other", [](const Tensor& t) { return ttnn::to_layout(t, other_layout(t)); }},
        {"to_memory_config",
         [](const Tensor& t) { return ttnn::to_memory_config(t, ttnn::L1_MEMORY_CONFIG); }},
        {"to_memory_config dram",
         [](const Tensor& t) { return ttnn::to_memory_config(t, ttnn::DRAM_MEMORY_CONFIG); }},
        {"from_device", [](const Tensor& t) { return ttnn::from_device(t); }},
        {"typecast", [](const Tensor& t) { return ttnn::typecast(t, DataType::FLOAT32); }},
        {"typecast same", [](const Tensor& t) { return ttnn::typecast(t, t.dtype()); }},
        {"layer_norm", [](const Tensor& t) { return ttnn::layer_norm(t); }},
        {"clone",
         [](const Tensor& t) { return ttnn::clone(t, std::nullopt, std::nullopt, std::nullopt); }},
        {"pad", [](const Tensor& t) { return ttnn::pad(t, Widths{{0, 32}, {0, 0}}, 0.0F); }},
        {"squeeze view", [](const Tensor& t) { return ttnn::unsqueeze(t, 0); }},
        {"where", [](const Tensor& t) { return ttnn::where(t, 1.0F, 0.0F); }},
        {"embedding", [](const Tensor& t) { return ttnn::embedding(t, t); }},
    };
    return calls;
}

/// Deallocating a result frees the input exactly if both share memory.
Results aliasing(Call& call) {
    const std::string name = call.rest();
    const auto conversion = conversions().find(name);
    if (conversion == conversions().end()) {
        throw Unmapped{"no C++ call for " + name};
    }
    const Tensor input = call.input(0);
    Tensor result = conversion->second(input);
    result.deallocate(true);
    Results results;
    results.add("str", input.is_allocated() ? "new buffer" : "same buffer");
    return results;
}

Results use_after_deallocate(Call& call) {
    const std::string name = call.rest();
    Tensor tensor = call.input(0);
    tensor.deallocate(true);
    const auto use = uses().find(name);
    if (use == uses().end()) {
        throw Unmapped{name + " of a deallocated tensor is a value of Python's"};
    }
    return use->second(tensor);
}

const char* truth(bool value) { return value ? "True" : "False"; }

std::string views(const std::string& name, Tensor&& tensor) {
    if (name == "v4") {
        Tensor same = ttnn::to_layout(tensor, tensor.layout());
        same.deallocate(true);
        return std::string("no-op to_layout result deallocated -> original allocated=") +
               truth(tensor.is_allocated());
    }
    if (name == "v5") {
        tensor.deallocate(false);
        return std::string("force=False, sole owner -> allocated=") + truth(tensor.is_allocated());
    }
    Tensor view = ttnn::reshape(tensor, Shape{1, 64, 64});
    if (name == "v1") {
        view.deallocate(true);
        return std::string("view deallocated -> original allocated=") +
               truth(tensor.is_allocated());
    }
    if (name == "v2") {
        tensor.deallocate(true);
        return std::string("original deallocated -> view allocated=") + truth(view.is_allocated());
    }
    view.deallocate(false);
    return std::string("view deallocated force=False -> original allocated=") +
           truth(tensor.is_allocated()) + " view allocated=" + truth(view.is_allocated());
}

Results deallocate(Call& call) {
    const bool force = call.value("force").value_or("True") == "True";
    Tensor tensor = call.input(0);
    ttnn::deallocate(tensor, force);
    if (call.take("twice")) {
        ttnn::deallocate(tensor, force);
    }
    Results results;
    results.add_none();
    return results;
}

Results in_place(Call& call) {
    const Tensor input = call.input(0);
    const std::string name = call.rest();
    if (name.starts_with("relu")) {
        return ttnn::relu(input, std::nullopt, input);
    }
    if (name.starts_with("add")) {
        return ttnn::add(input, input, std::nullopt, std::nullopt, input);
    }
    if (name == "eq") {
        return ttnn::eq(input, input);
    }
    if (name == "isnan") {
        return ttnn::isnan(input);
    }
    if (name == "logical_not") {
        return ttnn::logical_not(input);
    }
    return ttnn::gt(input, input, DataType::UINT8);
}

}  // namespace

void add_tensors(Operations& operations) {
    operations["aliasing"] = aliasing;
    operations["use after deallocate"] = use_after_deallocate;
    operations["deallocate"] = deallocate;
    operations["in-place / predicate outputs"] = in_place;
    operations["deallocate and views"] = [](Call& call) {
        Results results;
        // The call keeps its inputs: this tensor has no other owner.
        results.add("str",
                    views(call.rest(), make_tensor(call.row().inputs.at(0), call.on_device())));
        return results;
    };
    operations["Tensor.is_allocated"] = [](Call& call) {
        call.take("after deallocate");
        Tensor tensor = call.input(0);
        ttnn::deallocate(tensor);
        Results results;
        results.add("bool", truth(tensor.is_allocated()));
        return results;
    };
    operations["padded_shape"] = [](Call& call) {
        const Tensor tensor = call.input(0);
        Results results;
        results.add("str", "padded=" + name_of(tensor.padded_shape()) +
                               " volume=" + std::to_string(tensor.physical_volume()));
        return results;
    };
}

}  // namespace rules
