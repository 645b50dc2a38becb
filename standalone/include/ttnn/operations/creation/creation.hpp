#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>

#include "ttnn/core.hpp"
#include "ttnn/distributed/types.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/tensor/tensor.hpp"
#include "ttnn/tensor/types.hpp"
#include "ttnn/types.hpp"

// Creation of tensors: on the host unless given a device; bf16 and row-major by default.

namespace ttnn {

Tensor zeros(const ttnn::Shape& shape, const std::optional<DataType>& dtype = std::nullopt,
             const std::optional<Layout>& layout = std::nullopt,
             std::optional<std::reference_wrapper<MeshDevice>> device = std::nullopt,
             const std::optional<MemoryConfig>& memory_config = std::nullopt);

Tensor ones(const ttnn::Shape& shape, const std::optional<DataType>& dtype = std::nullopt,
            const std::optional<Layout>& layout = std::nullopt,
            std::optional<std::reference_wrapper<MeshDevice>> device = std::nullopt,
            const std::optional<MemoryConfig>& memory_config = std::nullopt);

template <typename FillValueType>
    requires std::is_same_v<FillValueType, int> or std::is_same_v<FillValueType, float>
Tensor full(const ttnn::Shape& shape, FillValueType fill_value,
            const std::optional<DataType>& dtype = std::nullopt,
            const std::optional<Layout>& layout = std::nullopt,
            std::optional<std::reference_wrapper<MeshDevice>> device = std::nullopt,
            const std::optional<MemoryConfig>& memory_config = std::nullopt,
            const std::optional<Tensor>& optional_output_tensor = std::nullopt);

/// Uninitialised elements; needs a device.
Tensor empty(const ttnn::Shape& shape, const DataType& dtype, const Layout& layout,
             MeshDevice* device, const MemoryConfig& memory_config);

template <typename FillValueType>
    requires std::is_same_v<FillValueType, int> or std::is_same_v<FillValueType, float>
Tensor full_like(const Tensor& tensor, FillValueType fill_value,
                 const std::optional<DataType>& dtype = std::nullopt,
                 const std::optional<Layout>& layout = std::nullopt,
                 std::optional<std::reference_wrapper<MeshDevice>> device = std::nullopt,
                 const std::optional<MemoryConfig>& memory_config = std::nullopt,
                 const std::optional<Tensor>& optional_output_tensor = std::nullopt);

Tensor zeros_like(const Tensor& tensor, const std::optional<DataType>& dtype = std::nullopt,
                  const std::optional<Layout>& layout = std::nullopt,
                  std::optional<std::reference_wrapper<MeshDevice>> device = std::nullopt,
                  const std::optional<MemoryConfig>& memory_config = std::nullopt,
                  const std::optional<Tensor>& optional_output_tensor = std::nullopt);

Tensor ones_like(const Tensor& tensor, const std::optional<DataType>& dtype = std::nullopt,
                 const std::optional<Layout>& layout = std::nullopt,
                 std::optional<std::reference_wrapper<MeshDevice>> device = std::nullopt,
                 const std::optional<MemoryConfig>& memory_config = std::nullopt,
                 const std::optional<Tensor>& optional_output_tensor = std::nullopt);

Tensor empty_like(const Tensor& tensor, const std::optional<DataType>& dtype = std::nullopt,
                  const std::optional<Layout>& layout = std::nullopt,
                  std::optional<std::reference_wrapper<MeshDevice>> device = std::nullopt,
                  const std::optional<MemoryConfig>& memory_config = std::nullopt);

/// start, start + step, ... up to but without stop.
Tensor arange(std::int64_t start, std::int64_t stop, std::int64_t step = 1,
              DataType dtype = ttnn::DataType::BFLOAT16,
              std::optional<std::reference_wrapper<MeshDevice>> device = std::nullopt,
              const MemoryConfig& memory_config = ttnn::DRAM_MEMORY_CONFIG,
              Layout layout = Layout::ROW_MAJOR);
Tensor arange(std::int64_t stop, DataType dtype = DataType::BFLOAT16,
              std::optional<std::reference_wrapper<MeshDevice>> device = std::nullopt,
              const MemoryConfig& memory_config = ttnn::DRAM_MEMORY_CONFIG,
              Layout layout = Layout::ROW_MAJOR);

}  // namespace ttnn
