#include "ttnn/operations/data_movement/permute/permute.hpp"

#include "core/chips.hpp"
#include "core/result_shards.hpp"
#include "core/shard_rules.hpp"
#include "data_movement/strided_copy.hpp"
#include "ttnn/operations/data_movement/transpose/transpose.hpp"

namespace ttcodegen::cpu {

namespace {

Tensor permute(const Tensor& input, const Extents& dims,
               const std::optional<MemoryConfig>& memory_config) {
    require_on_device(input, "Tensor to permute");
    const Shape& from = input.logical_shape();
    TT_FATAL(
        dims.size() == from.rank(),
        "The number of dimensions in the tensor input does not match the length of the desired "
        "ordering: {} and {}",
        from.rank(), dims.size());
    ttsl::SmallVector<std::uint32_t> sizes;
    ttsl::SmallVector<char> seen(dims.size(), 0);
    bool identity = true;
    for (std::size_t i = 0; i < dims.size(); ++i) {
        TT_FATAL(seen[dims[i]] == 0, "Dimension {} appears twice in a permutation", dims[i]);
        seen[dims[i]] = 1;
        sizes.push_back(from.view()[dims[i]]);
        identity = identity && dims[i] == i;
    }
    const std::size_t rank = dims.size();
    const bool turned = rank > 1 && dims[rank - 1] + 2 == rank && dims[rank - 2] + 1 == rank;
    if (identity && (!memory_config || *memory_config == input.memory_config())) {
        return input;
    }
    TT_FATAL(from.volume() != 0, "A tensor without elements cannot be permuted: {}", from);
    const Shape shape(std::move(sizes));
    const Tensor output = allocate_like(input, shape, input.dtype(), input.layout(),
                                        moved_memory(input, shape, memory_config, turned));
    const Strides strides = signed_strides(from);
    Strides permuted;
    for (const std::size_t dim : dims) {
        permuted.push_back(strides[dim]);
    }
    strided_copy({buffer_of(input).data(), permuted},
                 {buffer_of(output).data(), signed_strides(output.logical_shape())},
                 extents(output.logical_shape()), stored_size(input.dtype()));
    finish_block_float(output);
    return output;
}

Extents positions(const ttsl::SmallVector<std::int64_t>& dims, std::size_t rank) {
    Extents result;
    for (const std::int64_t dim : dims) {
        result.push_back(normalize_dim(dim, rank));
    }
    return result;
}

Tensor transpose(const Tensor& input, std::int64_t dim1, std::int64_t dim2,
                 const std::optional<MemoryConfig>& memory_config) {
    const std::size_t rank = input.logical_shape().rank();
    Extents dims;
    for (std::size_t i = 0; i < rank; ++i) {
        dims.push_back(i);
    }
    TT_FATAL(rank != 1 || input.layout() == Layout::ROW_MAJOR, "Can't convert shape rank");
    std::swap(dims[normalize_dim(dim1, rank)], dims[normalize_dim(dim2, rank)]);
    return permute(input, dims, memory_config);
}

}  // namespace

}  // namespace ttcodegen::cpu

namespace ttnn {

namespace cpu = ttcodegen::cpu;

Tensor permute(const Tensor& input, const SmallVector<std::int64_t>& dims,
               const std::optional<MemoryConfig>& memory_config, float pad_value) {
    TTCODEGEN_ON_EACH_CHIP(permute, input, dims, memory_config, pad_value);
    if (memory_config && input.layout() == Layout::ROW_MAJOR) {
        cpu::check_row_pages(*memory_config, input.dtype());
    }
    return cpu::permute(input, cpu::positions(dims, input.logical_shape().rank()), memory_config);
}

Tensor permute(const Tensor& input, const SmallVector<std::int64_t>& dims, float pad_value) {
    TTCODEGEN_ON_EACH_CHIP(permute, input, dims, pad_value);
    return permute(input, dims, std::nullopt, pad_value);
}

Tensor transpose(const Tensor& input, std::int64_t dim1, std::int64_t dim2,
                 const std::optional<MemoryConfig>& memory_config, float pad_value) {
    TTCODEGEN_ON_EACH_CHIP(transpose, input, dim1, dim2, memory_config, pad_value);
    return cpu::transpose(input, dim1, dim2, memory_config);
}

Tensor transpose(const Tensor& input, std::int64_t dim1, std::int64_t dim2, float pad_value) {
    TTCODEGEN_ON_EACH_CHIP(transpose, input, dim1, dim2, pad_value);
    return transpose(input, dim1, dim2, std::nullopt, pad_value);
}

}  // namespace ttnn
