#include "row.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace rules {

namespace {

constexpr std::size_t kColumns = 12;
/// Rows of sharded tensors also have the L1 use of a call.
constexpr std::size_t kColumnsWithShards = 15;

/// The value of the i-th input: a column with one value holds for all inputs.
std::string value_of(const std::vector<std::string>& column, std::size_t i) {
    return column.size() == 1 ? column.front() : column.at(i);
}

Row parse_row(std::size_t line, const std::vector<std::string>& fields) {
    Row row;
    row.line = line;
    row.op = fields[0];
    row.variant = fields[1];
    const auto shapes = split(fields[2], ',');
    const auto dtypes = split(fields[3], ',');
    const auto layouts = split(fields[4], ',');
    const auto storages = split(fields[5], ',');
    row.tells_shards = fields.size() == kColumnsWithShards;
    std::size_t inputs = shapes.size();
    if (row.tells_shards && inputs > 0) {
        inputs = std::max({inputs, dtypes.size(), layouts.size(), storages.size()});
    }
    for (std::size_t i = 0; i < inputs; ++i) {
        row.inputs.push_back({row.tells_shards ? value_of(shapes, i) : shapes[i],
                              value_of(dtypes, i), value_of(layouts, i), value_of(storages, i)});
    }
    row.status = fields[6];
    row.result = {fields[7], fields[8], fields[9], fields[10]};
    row.message = fields.back();
    return row;
}

}  // namespace

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> fields;
    if (text.empty()) {
        return fields;
    }
    std::size_t start = 0;
    for (std::size_t end = 0; end != std::string::npos; start = end + 1) {
        end = text.find(separator, start);
        fields.push_back(text.substr(start, end - start));
        if (end == std::string::npos) {
            break;
        }
    }
    return fields;
}

std::vector<Row> read_rows(const std::filesystem::path& file) {
    std::ifstream stream(file);
    if (!stream) {
        throw std::runtime_error("cannot read " + file.string());
    }
    std::vector<Row> rows;
    std::string text;
    std::getline(stream, text);
    for (std::size_t line = 2; std::getline(stream, text); ++line) {
        const auto fields = split(text, '\t');
        if (fields.size() != kColumns && fields.size() != kColumnsWithShards) {
            throw std::runtime_error(file.string() + ":" + std::to_string(line) + ": " +
                                     std::to_string(fields.size()) + " columns instead of " +
                                     std::to_string(kColumns) + " or " +
                                     std::to_string(kColumnsWithShards));
        }
        rows.push_back(parse_row(line, fields));
    }
    return rows;
}

std::string describe(const Row& row) {
    std::string text = row.op + " [" + row.variant + "]";
    for (const Input& input : row.inputs) {
        text += " " + input.shape + ":" + input.dtype + ":" + input.layout + ":" + input.storage;
    }
    return text;
}

std::string describe(const Result& result) {
    return result.dtype + " " + result.layout + " " + result.shape + " " + result.memory;
}

}  // namespace rules
