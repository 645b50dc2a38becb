#pragma once

// One measured call of the release: a line of the table of rules.

#include <filesystem>
#include <string>
#include <vector>

namespace rules {

/// One input tensor of a call.
struct Input {
    /// "2x3x32x64", or "scalar()" for rank 0.
    std::string shape;
    /// bf16 f32 bf8 bf4 u32 i32 u16 u8
    std::string dtype;
    /// T (tile) or R (row-major)
    std::string layout;
    /// host, dram, l1 (both interleaved) or hs (height-sharded in L1); where rows give shards,
    /// "bs8x8[32x64]" and the like
    std::string storage;
};

/// The columns that describe results; those of several results are joined with ';'.
struct Result {
    std::string dtype;
    std::string layout;
    std::string shape;
    /// dram, l1, l1:hs, l1:ws, l1:bs, host, dealloc
    std::string memory;

    bool operator==(const Result&) const = default;
};

struct Row {
    /// Its line in the file, from 1.
    std::size_t line = 0;
    std::string op;
    /// The arguments besides the inputs.
    std::string variant;
    std::vector<Input> inputs;
    /// ok, error (an exception), abort (the process died) or missing (no such operation)
    std::string status;
    Result result;
    std::string message;
    /// The table includes shard specs, as that of sharded tensors does.
    bool tells_shards = false;

    bool accepted() const { return status == "ok"; }
};

/// The fields of `text` between separators; none of an empty text.
std::vector<std::string> split(const std::string& text, char separator);

/// @throws std::runtime_error if the file cannot be read or a line is not a row.
std::vector<Row> read_rows(const std::filesystem::path& file);

/// The row for a reader: operation, arguments and inputs.
std::string describe(const Row& row);
std::string describe(const Result& result);

}  // namespace rules
