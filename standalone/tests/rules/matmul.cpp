// Matmuls.

#include "ttnn/operations/matmul/matmul.hpp"

#include "call.hpp"

namespace rules {

namespace {

/// The arguments of matmul and linear after their tensors.
struct Arguments {
    explicit Arguments(Call& call)
        : transpose_a(call.flag("transpose_a", false) || call.take("transpose_a")),
          transpose_b(call.flag("transpose_b", false) || call.take("transpose_b")),
          memory_config(call.memory_config()),
          dtype(call.dtype()) {
        if (const auto name = call.value("activation")) {
            if (*name == "UnaryWithParam(RELU)") {
                activation.emplace(ttnn::UnaryWithParam(ttnn::UnaryOpType::RELU));
            } else {
                activation.emplace(name->starts_with('\'') ? name->substr(1, name->size() - 2)
                                                           : *name);
            }
        }
        if (call.take("core_grid x")) {
            const auto size = numbers_of(call.value("y").value());
            core_grid = ttnn::CoreGrid(static_cast<std::size_t>(size[0]),
                                       static_cast<std::size_t>(size[1]));
        }
        for (const char* fidelity : {"HiFi4", "LoFi"}) {
            if (call.take(std::string("compute_kernel_config ") + fidelity + " fp32acc")) {
                compute_config.emplace();
                compute_config->fp32_dest_acc_en = true;
            }
        }
        for (const char* kind : {"same", "f32", "l1", "wrong shape", "ROW_MAJOR"}) {
            if (call.take(std::string("optional_output_tensor ") + kind)) {
                output = call.input(2);
            }
        }
        if (call.take("optional_output_tensor, 1D a")) {
            output = call.input(2);
        }
    }

    bool transpose_a;
    bool transpose_b;
    std::optional<const MemoryConfig> memory_config;
    std::optional<const DataType> dtype;
    std::optional<ttnn::Activation> activation;
    std::optional<ttnn::CoreGrid> core_grid;
    std::optional<ttnn::DeviceComputeKernelConfig> compute_config;
    std::optional<Tensor> output;
};

Results matmul(Call& call) {
    const Tensor a = call.input(0);
    if (call.take(kWideRows)) {
        Input second = call.row().inputs[0];
        second.shape = std::to_string(a.logical_shape()[1]) + "x32";
        return ttnn::matmul(a, make_tensor(second, call.on_device()));
    }
    const Arguments arguments(call);
    return ttnn::matmul(a, call.input(1), arguments.transpose_a, arguments.transpose_b,
                        arguments.memory_config, arguments.dtype, std::nullopt,
                        arguments.activation, arguments.compute_config, arguments.core_grid,
                        std::nullopt, arguments.output);
}

Results linear(Call& call) {
    std::optional<const Tensor> bias;
    if (call.take("bias")) {
        call.take("dtype");
        call.take("storage");
        bias.emplace(call.input(2));
    }
    const Arguments arguments(call);
    return ttnn::linear(call.input(0), call.input(1), bias, arguments.transpose_a,
                        arguments.transpose_b, arguments.memory_config, arguments.dtype,
                        std::nullopt, arguments.activation, arguments.compute_config,
                        arguments.core_grid, std::nullopt, arguments.output);
}

}  // namespace

void add_matmul(Operations& operations) {
    operations["matmul"] = matmul;
    operations["linear"] = linear;
    operations["addmm"] = [](Call& call) -> Results {
        const float alpha = call.take("alpha,beta") ? 2.0F : call.number("alpha").value_or(1.0F);
        return ttnn::addmm(call.input(0), call.input(1), call.input(2), alpha);
    };
}

}  // namespace rules
