#pragma once

// A call under construction: inputs, arguments parsed from the variant, results as text.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "row.hpp"
#include "ttnn/device.hpp"
#include "ttnn/tensor/tensor.hpp"
#include "ttnn/types.hpp"

namespace rules {

/// A variant with rows of the inputs that exceed L1. Such a row of the table has its first input
/// only; the others are equal.
inline constexpr const char* kWideRows = "wide rows (program compiled)";

using ttnn::DataType;
using ttnn::Layout;
using ttnn::MemoryConfig;
using ttnn::Shape;
using ttnn::Tensor;

/// Thrown for rows that have no C++ call: the reason is counted.
struct Unmapped {
    std::string reason;
};

DataType dtype_of(const std::string& name);
std::string name_of(DataType dtype);
Layout layout_of(const std::string& name);
Shape shape_of(const std::string& text);
std::string name_of(const Shape& shape);
/// Memory of a tensor by the table's name (dram, l1, hs); shards of 'hs' are on one or two cores.
MemoryConfig memory_of(const std::string& storage, const Shape& shape, Layout layout);
/// Memory in the notation of tables with shards: "bs8x8[32x64]c", "dws12x1[256x64]",
/// "hsn11[32x64]" (11 cores in row-major order), "hs2x2@1-1[64x512]"; a bare "hs" has no shard
/// spec.
MemoryConfig placement_of(const std::string& text);
/// The same notation for a memory config.
std::string placement_name(const MemoryConfig& memory_config);
/// "(1, 2)", "[1,2]", "1x2" or "1" as numbers.
std::vector<std::int64_t> numbers_of(const std::string& text);

/// A device that stays open until the program ends.
ttnn::MeshDevice* device();
/// A device without L1_SMALL, which sliding window operations need.
ttnn::MeshDevice* device_without_l1_small();

/// A tensor of zeros.
Tensor make_tensor(const Input& input, ttnn::MeshDevice* device);

/// The results of a call, in the notation of the table.
class Results {
  public:
    Results() = default;
    // Most calls return a tensor or nothing.
    Results(const Tensor& tensor) { add(tensor); }
    Results(const std::vector<Tensor>& tensors);

    void add(const Tensor& tensor);
    /// A result other than a tensor: its Python type and its text.
    void add(const std::string& type, const std::string& text);
    void add_none() { add("none", ""); }
    /// Text that the table has after the shapes.
    void add(const std::string& words) { additions_ += ";" + words; }
    /// The columns; with `tells_shards`, including shards, and all but the shapes once if all
    /// results agree.
    Result joined(bool tells_shards) const;

  private:
    struct Part {
        Result result;
        /// Shape and memory in the notation of tables with shards.
        std::string shape;
        std::string placement;
    };

    std::vector<Part> parts_;
    std::string additions_;
};

/// Parses a row's variant piece by piece; text that is left at the end is an error.
class Call {
  public:
    explicit Call(const Row& row) : row_(row), rest_(row.variant) {}

    const Row& row() const { return row_; }
    std::size_t inputs() const { return row_.inputs.size(); }
    /// The i-th input, created on first use.
    Tensor input(std::size_t i);
    std::optional<Tensor> optional_input(std::size_t i);
    std::vector<Tensor> all_inputs();

    /// Removes these words from the variant and returns whether it contained them.
    bool take(const std::string& words);
    /// The value of `key=value` and its removal from the variant.
    std::optional<std::string> value(const std::string& key);
    std::optional<std::int64_t> integer(const std::string& key);
    std::optional<float> number(const std::string& key);
    bool flag(const std::string& key, bool otherwise);
    /// Removes and returns the rest of the variant.
    std::string rest();

    /// dtype=...
    std::optional<DataType> dtype(const std::string& key = "dtype");
    /// layout=...
    std::optional<Layout> layout(const std::string& key = "layout");
    /// memory_config=..., or mc=... where rows give shards
    std::optional<MemoryConfig> memory_config();
    /// out=...: the last input, which receives the result.
    std::optional<Tensor> given_output();
    /// "with resident ...": the tensor that is in L1 during the call. Such a variant has no other
    /// arguments.
    std::optional<Tensor> take_resident();

    ttnn::MeshDevice* on_device() const { return device_; }
    void use_device_without_l1_small() { device_ = device_without_l1_small(); }

    /// The unread rest of the variant.
    std::string unread() const;

  private:
    const Row& row_;
    std::string rest_;
    std::vector<std::optional<Tensor>> inputs_;
    ttnn::MeshDevice* device_ = device();
};

/// Makes the call that a row describes; exceptions of the backend pass through.
using Operation = std::function<Results(Call&)>;
using Operations = std::map<std::string, Operation>;

/// One function per family of operations.
void add_attention(Operations& operations);
void add_binary(Operations& operations);
void add_caches(Operations& operations);
void add_convolution(Operations& operations);
void add_creation(Operations& operations);
void add_data_movement(Operations& operations);
void add_heads(Operations& operations);
void add_indexing(Operations& operations);
void add_matmul(Operations& operations);
void add_memory(Operations& operations);
void add_normalization(Operations& operations);
void add_pool(Operations& operations);
void add_reduction(Operations& operations);
void add_tensors(Operations& operations);
void add_ternary(Operations& operations);
void add_unary(Operations& operations);

/// The same for the table of sharded tensors, whose variants have their own notation.
void add_placed_attention(Operations& operations);
void add_placed_creation(Operations& operations);
void add_placed_elementwise(Operations& operations);
void add_placed_heads(Operations& operations);
void add_placed_matmul(Operations& operations);
void add_placed_moves(Operations& operations);
void add_placed_rows(Operations& operations);
void add_placed_shapes(Operations& operations);
void add_placed_windows(Operations& operations);

}  // namespace rules
