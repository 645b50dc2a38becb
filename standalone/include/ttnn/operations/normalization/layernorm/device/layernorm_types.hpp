#pragma once

#include <cstddef>
#include <tt-metalium/core_coord.hpp>
#include <variant>

namespace ttnn::prim {

struct LayerNormDefaultProgramConfig {
    bool legacy_reduction = false;
    bool legacy_rsqrt = false;
    bool use_welford = false;
};

struct LayerNormShardedMultiCoreProgramConfig {
    tt::tt_metal::CoreCoord compute_with_storage_grid_size;
    std::size_t subblock_w{};
    std::size_t block_h{};
    std::size_t block_w{};
    bool inplace{};
    bool legacy_reduction = false;
    bool legacy_rsqrt = false;
    bool use_welford = false;
};

using LayerNormProgramConfig =
    std::variant<LayerNormDefaultProgramConfig, LayerNormShardedMultiCoreProgramConfig>;

}  // namespace ttnn::prim
