// Moves of tensors to other memories and layouts.

#include "call.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/data_movement/clone/clone.hpp"
#include "ttnn/operations/data_movement/copy/copy.hpp"
#include "ttnn/operations/data_movement/move/move.hpp"
#include "ttnn/operations/data_movement/sharded/interleaved_to_sharded/interleaved_to_sharded.hpp"
#include "ttnn/operations/data_movement/sharded/reshard/reshard.hpp"
#include "ttnn/operations/data_movement/sharded/sharded_to_interleaved/sharded_to_interleaved.hpp"
#include "ttnn/operations/data_movement/tilize/tilize.hpp"
#include "ttnn/operations/data_movement/tilize_with_val_padding/tilize_with_val_padding.hpp"
#include "ttnn/operations/data_movement/untilize/untilize.hpp"

namespace rules {

namespace {

/// The first of the words that are left, which names a place, a layout or a data type.
std::string take_target(Call& call) {
    const std::string target = split(call.unread(), ',').at(0);
    call.take(target);
    return target;
}

Results to_memory_config(Call& call) {
    const auto dtype = call.dtype();
    call.take("1-core shard growth");
    const MemoryConfig target = placement_of(take_target(call));
    return ttnn::to_memory_config(call.input(0), target, dtype);
}

Results interleaved_to_sharded(Call& call) {
    const MemoryConfig target = placement_of(take_target(call));
    std::optional<DataType> dtype;
    if (!call.unread().empty()) {
        dtype = dtype_of(take_target(call));
    }
    return ttnn::interleaved_to_sharded(call.input(0), target, dtype);
}

Results sharded_to_interleaved(Call& call) {
    const std::string place = take_target(call);
    const MemoryConfig target = place == "None" ? ttnn::DRAM_MEMORY_CONFIG : placement_of(place);
    std::optional<DataType> dtype;
    if (!call.unread().empty()) {
        dtype = dtype_of(take_target(call));
    }
    return ttnn::sharded_to_interleaved(call.input(0), target, dtype);
}

/// "T, mc=dram", "R, dtype=f32"
Results to_layout(Call& call) {
    const auto memory_config = call.memory_config();
    const std::optional<const DataType> dtype(call.dtype());
    call.take("1-core shard growth");
    return ttnn::to_layout(call.input(0), layout_of(take_target(call)), dtype, memory_config);
}

Results to_other_layout(Call& call) {
    call.take("size");
    const Tensor input = call.input(0);
    return ttnn::to_layout(input,
                           input.layout() == Layout::TILE ? Layout::ROW_MAJOR : Layout::TILE);
}

/// Beside a tensor in L1.
Results to_rows(Call& call) {
    const auto resident = call.take_resident();
    return ttnn::to_layout(call.input(0), Layout::ROW_MAJOR);
}

Results clone(Call& call) {
    call.take("size");
    const auto dtype = call.dtype();
    const auto memory_config = call.memory_config();
    return ttnn::clone(call.input(0), dtype, memory_config, std::nullopt);
}

}  // namespace

void add_placed_moves(Operations& operations) {
    operations["to_memory_config"] = to_memory_config;
    operations["to_memory_config other"] = [](Call& call) -> Results {
        call.take("size");
        const Tensor input = call.input(0);
        return ttnn::to_memory_config(input, input.memory_config().is_dram()
                                                 ? ttnn::L1_MEMORY_CONFIG
                                                 : ttnn::DRAM_MEMORY_CONFIG);
    };
    operations["to_memory_config dram"] = [](Call& call) -> Results {
        return ttnn::to_memory_config(call.input(0), ttnn::DRAM_MEMORY_CONFIG);
    };
    operations["reshard"] = [](Call& call) -> Results {
        return ttnn::reshard(call.input(0), placement_of(take_target(call)));
    };
    operations["interleaved_to_sharded"] = interleaved_to_sharded;
    operations["sharded_to_interleaved"] = sharded_to_interleaved;
    operations["to_layout"] = to_layout;
    operations["to_layout other"] = to_other_layout;
    operations["to_layout R"] = to_rows;
    operations["clone"] = clone;
    operations["copy"] = [](Call& call) -> Results {
        return ttnn::copy(call.input(0), call.input(1));
    };
    operations["move"] = [](Call& call) -> Results {
        const auto memory_config = call.memory_config();
        return ttnn::move(call.input(0), memory_config);
    };
    operations["reallocate"] = [](Call& call) -> Results {
        return ttnn::reallocate(call.input(0), std::nullopt);
    };
    operations["tilize"] = [](Call& call) -> Results {
        const auto memory_config = call.memory_config();
        return ttnn::tilize(call.input(0), memory_config, call.dtype());
    };
    operations["untilize"] = [](Call& call) -> Results {
        const auto memory_config = call.memory_config();
        return ttnn::untilize(call.input(0), memory_config);
    };
    operations["tilize_with_zero_padding"] = [](Call& call) -> Results {
        return ttnn::tilize_with_zero_padding(call.input(0));
    };
    operations["cpu"] = [](Call& call) -> Results { return call.input(0).cpu(); };
    operations["from_device"] = [](Call& call) -> Results {
        return ttnn::from_device(call.input(0));
    };
    operations["to_device(dram)"] = [](Call& call) -> Results {
        return ttnn::to_device(call.input(0), call.on_device(), ttnn::DRAM_MEMORY_CONFIG);
    };
}

}  // namespace rules
