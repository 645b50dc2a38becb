// Data types, layouts and places of tensors.

#include "call.hpp"
#include "ttnn/operations/copy/typecast/typecast.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/data_movement/copy/copy.hpp"
#include "ttnn/operations/data_movement/move/move.hpp"
#include "ttnn/operations/data_movement/sharded/interleaved_to_sharded/interleaved_to_sharded.hpp"
#include "ttnn/operations/data_movement/sharded/sharded_to_interleaved/sharded_to_interleaved.hpp"
#include "ttnn/operations/data_movement/tilize/tilize.hpp"
#include "ttnn/operations/data_movement/tilize_with_val_padding/tilize_with_val_padding.hpp"
#include "ttnn/operations/data_movement/untilize/untilize.hpp"
#include "ttnn/operations/data_movement/untilize_with_unpadding/untilize_with_unpadding.hpp"

namespace rules {

namespace {

/// The word after "to " at the start of the variant.
std::string target_of(Call& call) {
    for (const char* name :
         {"bf16", "f32", "bf8", "bf4", "u32", "i32", "u16", "u8", "T", "R", "dram", "l1", "hs"}) {
        if (call.take(std::string("to ") + name)) {
            return name;
        }
    }
    throw Unmapped{"nothing to convert to"};
}

MemoryConfig memory_like(const std::string& storage, const Tensor& tensor) {
    return memory_of(storage, tensor.logical_shape(), tensor.layout());
}

Results typecast(Call& call) {
    if (call.take(kWideRows)) {
        return ttnn::typecast(call.input(0), DataType::FLOAT32);
    }
    const DataType dtype = dtype_of(target_of(call));
    const auto memory_config = call.memory_config();
    std::optional<Tensor> output;
    if (call.take("output_tensor")) {
        call.take("i32");
        output = call.input(1);
    }
    return ttnn::typecast(call.input(0), dtype, memory_config, output);
}

Results to_layout(Call& call) {
    const Tensor input = call.input(0);
    if (call.take(kWideRows)) {
        return ttnn::to_layout(input,
                               input.layout() == Layout::TILE ? Layout::ROW_MAJOR : Layout::TILE);
    }
    const Layout layout = layout_of(target_of(call));
    const auto dtype = call.dtype();
    return ttnn::to_layout(input, layout, dtype, call.memory_config());
}

Results to_memory_config(Call& call) {
    const Tensor input = call.input(0);
    if (call.take(kWideRows)) {
        return ttnn::to_memory_config(input, ttnn::L1_MEMORY_CONFIG);
    }
    const MemoryConfig memory_config = memory_like(target_of(call), input);
    call.take("(same)");
    return ttnn::to_memory_config(input, memory_config, call.dtype());
}

Results to_device(Call& call) {
    const Tensor input = call.input(0);
    std::optional<MemoryConfig> memory_config;
    if (const auto storage = call.value("memory_config")) {
        memory_config = memory_like(*storage, input);
    }
    call.take("already on device");
    return ttnn::to_device(input, call.on_device(), memory_config);
}

Results assign(Call& call) {
    if (const auto memory_config = call.memory_config()) {
        const std::optional<const DataType> dtype(call.dtype());
        return ttnn::assign(call.input(0), *memory_config, dtype);
    }
    return ttnn::assign(call.input(0), call.input(1));
}

Results tilize_with_value(Call& call) {
    const bool narrow = call.take("to 32x60");
    call.take("to 32x64 val 0.0");
    return ttnn::tilize_with_val_padding(call.input(0), narrow ? Shape{32, 60} : Shape{32, 64},
                                         0.0F);
}

Results untilize_with_unpadding(Call& call) {
    const bool whole = call.take("end 29,49");
    call.take("end 15,20");
    return ttnn::untilize_with_unpadding(call.input(0), whole ? Shape{29, 49} : Shape{15, 20});
}

}  // namespace

void add_memory(Operations& operations) {
    operations["typecast"] = typecast;
    operations["to_dtype"] = [](Call& call) -> Results {
        return ttnn::to_dtype(call.input(0), dtype_of(target_of(call)));
    };
    operations["to_layout"] = to_layout;
    operations["to_memory_config"] = to_memory_config;
    operations["to_device"] = to_device;
    operations["from_device"] = [](Call& call) -> Results {
        call.take("already host");
        return ttnn::from_device(call.input(0));
    };
    operations["Tensor.cpu"] = [](Call& call) -> Results { return call.input(0).cpu(); };
    operations["Tensor.to(layout)"] = [](Call& call) -> Results {
        call.take("to other layout");
        const Tensor input = call.input(0);
        return ttnn::to_layout(input,
                               input.layout() == Layout::TILE ? Layout::ROW_MAJOR : Layout::TILE);
    };
    operations["tilize"] = [](Call& call) -> Results {
        return ttnn::tilize(call.input(0), std::nullopt, call.dtype());
    };
    operations["untilize"] = [](Call& call) -> Results { return ttnn::untilize(call.input(0)); };
    operations["tilize_with_zero_padding"] = [](Call& call) -> Results {
        return ttnn::tilize_with_zero_padding(call.input(0));
    };
    operations["tilize_with_val_padding"] = tilize_with_value;
    operations["untilize_with_unpadding"] = untilize_with_unpadding;
    operations["copy"] = [](Call& call) -> Results {
        return ttnn::copy(call.input(0), call.input(1));
    };
    operations["assign"] = assign;
    operations["move"] = [](Call& call) -> Results { return ttnn::move(call.input(0)); };
    operations["reallocate"] = [](Call& call) -> Results {
        return ttnn::reallocate(call.input(0), std::nullopt);
    };
    operations["interleaved_to_sharded"] = [](Call& call) -> Results {
        return ttnn::interleaved_to_sharded(call.input(0),
                                            memory_like(target_of(call), call.input(0)));
    };
    operations["sharded_to_interleaved"] = [](Call& call) -> Results {
        const MemoryConfig memory_config = memory_like(target_of(call), call.input(0));
        call.take("(input interleaved)");
        return ttnn::sharded_to_interleaved(call.input(0), memory_config);
    };
}

}  // namespace rules
