// Elementwise operations of placed tensors.

#include "call.hpp"
#include "ttnn/operations/copy/typecast/typecast.hpp"
#include "ttnn/operations/eltwise/binary/binary.hpp"
#include "ttnn/operations/eltwise/binary/binary_composite.hpp"
#include "ttnn/operations/eltwise/ternary/ternary.hpp"
#include "ttnn/operations/eltwise/ternary/ternary_composite_op.hpp"
#include "ttnn/operations/eltwise/unary/unary.hpp"
#include "ttnn/operations/eltwise/unary/unary_composite.hpp"
#include "wrap.hpp"

namespace rules {

namespace {

using ttnn::operations::unary::EltwiseUnaryWithParam;
using ttnn::operations::unary::UnaryOpType;

/// Remarks on the origin of a row, and the tensor that is in L1 during the call.
struct Surroundings {
    explicit Surroundings(Call& call) : resident(call.take_resident()) {
        for (const char* remark : {"size", "1-core shard growth", "same tensor twice",
                                   "same tensor thrice", "hs + dram"}) {
            call.take(remark);
        }
    }

    std::optional<Tensor> resident;
};

template <typename Function>
void of_one(Operations& operations, const char* name, Function function) {
    operations[name] = [function](Call& call) -> Results {
        const Surroundings surroundings(call);
        const auto memory_config = call.memory_config();
        const auto output = call.given_output();
        return function(call.input(0), memory_config, output);
    };
}

template <typename Function>
void of_two(Operations& operations, const char* name, Function function) {
    operations[name] = [function](Call& call) -> Results {
        const bool same = call.row().variant.find("same tensor twice") != std::string::npos;
        const Surroundings surroundings(call);
        const std::optional<const DataType> dtype(call.dtype());
        const auto memory_config = call.memory_config();
        const auto output = call.given_output();
        std::vector<EltwiseUnaryWithParam> activations;
        if (call.take("activations=[RELU]")) {
            activations.emplace_back(UnaryOpType::RELU);
        }
        std::vector<EltwiseUnaryWithParam> first;
        if (call.take("input_tensor_a_activations=[SILU]")) {
            first.emplace_back(UnaryOpType::SILU);
        }
        const Tensor a = call.input(0);
        // The rest is a scalar.
        if (const std::string number = call.unread(); !number.empty()) {
            call.rest();
            return function(a, std::stof(number), dtype, memory_config, output,
                            ttsl::Span<const EltwiseUnaryWithParam>(activations));
        }
        return function(a, same ? a : call.input(1), dtype, memory_config, output,
                        ttsl::Span<const EltwiseUnaryWithParam>(activations),
                        ttsl::Span<const EltwiseUnaryWithParam>(first));
    };
}

template <typename Function>
void of_bits(Operations& operations, const char* name, Function function) {
    operations[name] = [function](Call& call) -> Results {
        const auto memory_config = call.memory_config();
        return function(call.input(0), call.input(1), memory_config);
    };
}

Results where(Call& call) {
    const bool same = call.row().variant.find("same tensor thrice") != std::string::npos;
    const Surroundings surroundings(call);
    const auto memory_config = call.memory_config();
    call.take("bcast");
    const Tensor condition = call.input(0);
    if (call.take("TTS")) {
        return ttnn::where(condition, call.input(1), 1.0F, memory_config);
    }
    if (call.take("TST")) {
        return ttnn::where(condition, 1.0F, call.input(1), memory_config);
    }
    if (call.take("TSS")) {
        return ttnn::where(condition, 1.0F, 0.0F, memory_config);
    }
    call.take("TTT");
    return ttnn::where(condition, same ? condition : call.input(1),
                       same ? condition : call.input(2), memory_config);
}

/// "bf16, mc=l1"; "->bf16" and "bf16->f32" are part of some rows' names.
Operation typecast(const std::string& named = "") {
    return [named](Call& call) -> Results {
        const Surroundings surroundings(call);
        const auto memory_config = call.memory_config();
        const std::string target = named.empty() ? split(call.unread(), ',').at(0) : named;
        call.take(target);
        return ttnn::typecast(call.input(0), dtype_of(target), memory_config);
    };
}

void add_ternary_operations(Operations& operations) {
    operations["where"] = where;
    operations["where TTT"] = where;
    operations["addcmul"] = [](Call& call) -> Results {
        return ttnn::addcmul(call.input(0), call.input(1), call.input(2), 1.0F);
    };
    operations["addcdiv"] = [](Call& call) -> Results {
        return ttnn::addcdiv(call.input(0), call.input(1), call.input(2), 1.0F);
    };
    operations["lerp"] = [](Call& call) -> Results {
        return ttnn::lerp(call.input(0), call.input(1), call.input(2));
    };
    operations["mac"] = [](Call& call) -> Results {
        return ttnn::mac(call.input(0), call.input(1), call.input(2), std::nullopt);
    };
}

}  // namespace

void add_placed_elementwise(Operations& operations) {
    of_one(operations, TTNN(relu));
    of_one(operations, TTNN(bitwise_not));
    of_one(operations, TTNN(identity));
    of_one(operations, "gelu",
           [](const Tensor& input, const auto& memory_config, const auto& output) {
               return ttnn::gelu(input, false, memory_config, output);
           });
    of_two(operations, TTNN(add));
    of_two(operations, "mul",
           [](const auto&... arguments) { return ttnn::multiply(arguments...); });
    of_two(operations, "eq", [](const auto&... arguments) { return ttnn::eq(arguments...); });
    of_bits(operations, TTNN(bitwise_and));
    of_bits(operations, TTNN(bitwise_or));
    of_bits(operations, TTNN(logical_left_shift));
    of_two(operations, TTNN(logical_right_shift));
    of_bits(operations, TTNN(bitwise_left_shift));
    operations["mul scalar"] = [](Call& call) -> Results {
        call.take("size");
        return ttnn::multiply(call.input(0), 2.0F);
    };
    operations["add_"] = [](Call& call) -> Results {
        return ttnn::add_(call.input(0), call.input(1));
    };
    operations["div"] = [](Call& call) -> Results {
        call.take("size");
        return ttnn::div(call.input(0), call.input(1));
    };
    operations["pow"] = [](Call& call) -> Results {
        call.take("size");
        return ttnn::pow(call.input(0), call.input(1));
    };
    operations["typecast"] = typecast();
    for (const char* name : {"typecast ->bf16", "typecast bf16"}) {
        operations[name] = typecast("bf16");
    }
    for (const char* name : {"typecast bf16->f32", "typecast f32"}) {
        operations[name] = typecast("f32");
    }
    for (const bool upper : {false, true}) {
        operations[upper ? "triu" : "tril"] = [upper](Call& call) -> Results {
            return upper ? ttnn::triu(call.input(0), 0) : ttnn::tril(call.input(0), 0);
        };
    }
    add_ternary_operations(operations);
}

}  // namespace rules
