// Elementwise operations of two tensors, or of a tensor and a scalar.

#include "ttnn/operations/eltwise/binary/binary.hpp"

#include "call.hpp"
#include "ttnn/operations/eltwise/binary/binary_composite.hpp"
#include "ttnn/operations/eltwise/unary/unary.hpp"
#include "wrap.hpp"

namespace rules {

namespace {

using ttnn::operations::unary::EltwiseUnaryWithParam;
using ttnn::operations::unary::UnaryOpType;

/// Arguments of a binary operation besides its operands.
struct Arguments {
    explicit Arguments(Call& call) : memory_config(call.memory_config()), dtype(call.dtype()) {
        call.take(kWideRows);
        if (call.take("activations=[RELU]")) {
            activations.emplace_back(UnaryOpType::RELU);
        }
        for (const char* kind : {"output_tensor same", "output_tensor f32", "output_tensor l1",
                                 "output_tensor other shape", "output_tensor ROW_MAJOR",
                                 "output_tensor hs", "output_tensor, broadcast"}) {
            if (call.take(kind)) {
                output = call.input(2);
            }
        }
        if (call.take("scalar")) {
            if (call.value("a")) {
                throw Unmapped{"a number as the first operand"};
            }
            scalar = call.value("b");
        }
    }

    float number() const { return std::stof(*scalar); }
    std::int32_t integer() const { return static_cast<std::int32_t>(std::stoi(*scalar)); }

    std::optional<MemoryConfig> memory_config;
    std::optional<DataType> dtype;
    std::vector<EltwiseUnaryWithParam> activations;
    std::optional<Tensor> output;
    /// "2.5" or "3(int)"
    std::optional<std::string> scalar;
};

/// (a, b, dtype, memory_config, output, activations)
template <typename Function>
void plain(Operations& operations, const char* name, Function function) {
    operations[name] = [function](Call& call) -> Results {
        const Arguments arguments(call);
        const ttsl::Span<const EltwiseUnaryWithParam> activations(arguments.activations);
        const std::optional<const DataType> dtype(arguments.dtype);
        if (arguments.scalar) {
            return function(call.input(0), arguments.number(), dtype, arguments.memory_config,
                            arguments.output, activations);
        }
        return function(call.input(0), call.input(1), dtype, arguments.memory_config,
                        arguments.output, activations);
    };
}

/// In-place operations: the first operand receives the result.
template <typename Function>
void in_place(Operations& operations, const char* name, Function function) {
    operations[name] = [function](Call& call) -> Results {
        const Arguments arguments(call);
        return arguments.scalar ? function(call.input(0), arguments.number())
                                : function(call.input(0), call.input(1));
    };
}

/// Bitwise operations take integers, and no dtype.
template <typename Function>
void of_bits(Operations& operations, const char* name, Function function) {
    operations[name] = [function](Call& call) -> Results {
        const Arguments arguments(call);
        const ttsl::Span<const EltwiseUnaryWithParam> activations(arguments.activations);
        if (arguments.scalar) {
            return function(call.input(0), arguments.integer(), arguments.memory_config,
                            arguments.output, activations);
        }
        return function(call.input(0), call.input(1), arguments.memory_config, arguments.output,
                        activations);
    };
}

void add_plain(Operations& operations) {
    plain(operations, TTNN(add));
    plain(operations, TTNN(subtract));
    plain(operations, TTNN(multiply));
    plain(operations, TTNN(divide));
    plain(operations, TTNN(rsub));
    plain(operations, TTNN(maximum));
    plain(operations, TTNN(minimum));
    plain(operations, TTNN(remainder));
    plain(operations, TTNN(eq));
    plain(operations, TTNN(ne));
    plain(operations, TTNN(lt));
    plain(operations, TTNN(le));
    plain(operations, TTNN(gt));
    plain(operations, TTNN(ge));
    plain(operations, TTNN(logical_and));
    plain(operations, TTNN(logical_or));
    plain(operations, TTNN(logical_xor));
    plain(operations, TTNN(ldexp));
    plain(operations, TTNN(logaddexp));
    plain(operations, TTNN(logaddexp2));
    plain(operations, TTNN(squared_difference));
    plain(operations, TTNN(logical_right_shift));
    plain(operations, TTNN(xlogy));
}

void add_in_place(Operations& operations) {
    in_place(operations, TTNN(add_));
    in_place(operations, TTNN(subtract_));
    in_place(operations, TTNN(multiply_));
    in_place(operations, TTNN(divide_));
    in_place(operations, TTNN(eq_));
    in_place(operations, TTNN(gt_));
    in_place(operations, TTNN(logical_and_));
}

template <typename Function>
Results of_tensors(Call& call, Function function) {
    const Arguments arguments(call);
    if (arguments.scalar) {
        throw Unmapped{"a number as the second operand"};
    }
    return function(call.input(0), call.input(1), arguments);
}

Results power(Call& call) {
    if (const std::string variant = call.row().variant; variant.starts_with("scalar a=")) {
        call.rest();
        return ttnn::pow(2.0F, call.input(0));
    }
    const Arguments arguments(call);
    if (!arguments.scalar) {
        return ttnn::pow(call.input(0), call.input(1), arguments.dtype, arguments.memory_config,
                         arguments.output, arguments.activations);
    }
    if (arguments.dtype) {
        throw Unmapped{"pow with a number takes no dtype"};
    }
    return arguments.scalar->ends_with("(int)")
               ? ttnn::pow(call.input(0), arguments.integer(), arguments.memory_config)
               : ttnn::pow(call.input(0), arguments.number(), arguments.memory_config);
}

}  // namespace

void add_binary(Operations& operations) {
    add_plain(operations);
    add_in_place(operations);
    of_bits(operations, TTNN(bitwise_and));
    of_bits(operations, TTNN(bitwise_or));
    of_bits(operations, TTNN(bitwise_xor));
    of_bits(operations, TTNN(bitwise_left_shift));
    of_bits(operations, TTNN(bitwise_right_shift));
    of_bits(operations, TTNN(logical_left_shift));
    operations["pow"] = power;
    operations["div"] = [](Call& call) -> Results {
        const Arguments arguments(call);
        return arguments.scalar ? ttnn::div(call.input(0), arguments.number())
                                : ttnn::div(call.input(0), call.input(1));
    };
    operations["fmod"] = [](Call& call) -> Results {
        const Arguments arguments(call);
        return arguments.scalar ? ttnn::fmod(call.input(0), arguments.number())
                                : ttnn::fmod(call.input(0), call.input(1));
    };
    operations["hypot"] = [](Call& call) {
        return of_tensors(call, [](const Tensor& a, const Tensor& b, const Arguments& arguments) {
            return ttnn::hypot(a, b, arguments.memory_config, arguments.output);
        });
    };
    operations["atan2"] = [](Call& call) {
        return of_tensors(call, [](const Tensor& a, const Tensor& b, const Arguments& arguments) {
            return ttnn::atan2(a, b, arguments.memory_config);
        });
    };
    operations["gcd"] = [](Call& call) {
        return of_tensors(call, [](const Tensor& a, const Tensor& b, const Arguments& arguments) {
            return ttnn::gcd(a, b, arguments.dtype, arguments.memory_config, arguments.output);
        });
    };
    operations["lcm"] = [](Call& call) {
        return of_tensors(call, [](const Tensor& a, const Tensor& b, const Arguments& arguments) {
            return ttnn::lcm(a, b, arguments.dtype, arguments.memory_config, arguments.output);
        });
    };
    operations["rpow"] = [](Call& call) -> Results {
        const Arguments arguments(call);
        return ttnn::rpow(call.input(0), arguments.number());
    };
}

}  // namespace rules
