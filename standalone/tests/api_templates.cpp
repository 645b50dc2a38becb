// References to every function template that programs call and whose instantiations the release
// exports. Ordinary functions are checked by name, see scripts/link_check.py.

#include <cstdint>
#include <tuple>

#include "tt-metalium/tilize_utils.hpp"
#include "ttnn/operations/creation/creation.hpp"
#include "ttnn/operations/data_movement/slice/slice.hpp"
#include "ttnn/tensor/tensor.hpp"

namespace {

using ttnn::Tensor;
using Memory = std::optional<ttnn::MemoryConfig>;
using Queue = std::optional<ttnn::QueueId>;
using Cores = std::optional<ttnn::CoreRangeSet>;

template <typename T>
auto element_functions() {
    return std::tuple(static_cast<Tensor (*)(ttsl::Span<const T>, const ttnn::TensorSpec&,
                                             ttnn::MeshDevice*, Queue, T)>(&Tensor::from_span<T>),
                      static_cast<Tensor (*)(std::vector<T>&&, const ttnn::TensorSpec&,
                                             ttnn::MeshDevice*, Queue, T)>(&Tensor::from_vector<T>),
                      &Tensor::to_vector<T>);
}

template <typename T>
auto slice_functions() {
    return static_cast<Tensor (*)(const Tensor&, ttsl::Span<const T>, ttsl::Span<const T>,
                                  ttsl::Span<const T>, const Memory&, const std::optional<Tensor>&,
                                  const std::optional<float>&, const Cores&)>(&ttnn::slice<T>);
}

using Sizes = std::array<std::uint32_t, 4>;

}  // namespace

/// Global, so that the compiler keeps the references.
auto element_function_references =
    std::tuple(element_functions<bfloat16>(), element_functions<float>(),
               element_functions<std::int32_t>(), element_functions<std::uint32_t>(),
               element_functions<std::uint16_t>(), element_functions<std::uint8_t>());
auto creation_references = std::tuple(&ttnn::full<int>, &ttnn::full<float>, &ttnn::full_like<int>,
                                      &ttnn::full_like<float>);
auto slice_references = std::tuple(
    slice_functions<std::int32_t>(), slice_functions<std::uint32_t>(),
    static_cast<Tensor (*)(const Tensor&, const Sizes&, const Sizes&, const Sizes&, const Memory&,
                           const std::optional<Tensor>&, const std::optional<float>&,
                           const Cores&)>(&ttnn::slice<std::uint32_t, 4>),
    static_cast<Tensor (*)(const Tensor&, const Tensor&, const Tensor&,
                           const std::optional<ttsl::SmallVector<std::uint32_t>>&, const Memory&,
                           const std::optional<Tensor>&, const std::optional<float>&,
                           const std::optional<std::uint32_t>&, const std::optional<std::uint32_t>&,
                           const Cores&)>(&ttnn::slice<std::uint32_t>));

template <typename T>
auto tile_functions() {
    return std::tuple(&tilize_nfaces<T>, &untilize_nfaces<T>, &tilize_swizzled<T>,
                      &untilize_swizzled<T>);
}

template <typename T>
auto layout_function() {
    return &convert_layout<T>;
}

auto tile_references = std::tuple(tile_functions<bfloat16>(), tile_functions<float>(),
                                  tile_functions<std::uint32_t>(), tile_functions<std::uint16_t>());
auto layout_references =
    std::tuple(layout_function<bfloat16>(), layout_function<float>(),
               layout_function<std::int32_t>(), layout_function<std::uint32_t>(),
               layout_function<std::uint16_t>(), layout_function<std::uint8_t>());
