#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "compute_testing.hpp"
#include "ttnn/operations/core/core.hpp"
#include "ttnn/operations/data_movement/slice/slice.hpp"
#include "ttnn/operations/data_movement/split/split.hpp"
#include "ttnn/operations/eltwise/binary/binary.hpp"
#include "ttnn/operations/eltwise/binary/binary_composite.hpp"
#include "ttnn/operations/eltwise/unary/unary.hpp"
#include "ttnn/operations/matmul/matmul.hpp"
#include "ttnn/operations/reduction/generic/generic_reductions.hpp"

using namespace compute_testing;

namespace {

const std::filesystem::path folder =
    std::filesystem::temp_directory_path() / ("call_report_test_" + std::to_string(getpid()));
int reports = 0;

std::string text_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// The lines that the calls in a function append to the report.
template <typename Calls>
std::vector<std::string> reported(const Calls& calls) {
    const auto report = folder / (std::to_string(reports++) + ".jsonl");
    setenv("TTCODEGEN_CALL_REPORT", report.c_str(), 1);
    calls();
    unsetenv("TTCODEGEN_CALL_REPORT");
    std::vector<std::string> lines;
    std::ifstream file(report);
    for (std::string line; std::getline(file, line);) {
        lines.push_back(line);
    }
    return lines;
}

void expect_text(const std::string& text, const std::string& part) {
    expect(text.find(part) != std::string::npos, "'" + part + "' is not in: " + text);
}

void test_each_call_has_a_line() {
    const Tensor a = draw_tensor(Shape({32, 64}), DataType::BFLOAT16);
    const Tensor b = draw_tensor(Shape({64, 32}), DataType::BFLOAT16);
    const auto lines = reported([&] {
        const Tensor product = ttnn::matmul(a, b);
        ttnn::sum(ttnn::exp(ttnn::add(product, 1.0F)), 1, true);
    });
    expect(lines.size() == 4, std::to_string(lines.size()) + " lines instead of 4");
    const std::vector<std::string> names{"matmul", "add", "exp", "sum"};
    for (std::size_t i = 0; i < names.size(); ++i) {
        expect(lines[i].starts_with("{\"op\": \"" + names[i] + "\", \"begin_us\": "), lines[i]);
    }
    expect_text(lines[0],
                "\"read_bytes\": 8192, \"outputs\": [{\"shape\": [32, 32], \"data_type\": "
                "\"BFLOAT16\", \"bytes\": 2048, \"page\": \"tile\", \"memory\": {\"layout\": "
                "\"interleaved\", \"buffer\": \"dram\", \"shards\": null}}]}");
    expect_text(lines[3], "\"outputs\": [{\"shape\": [32, 1], ");
}

void test_calls_of_an_operation_have_none() {
    const Tensor a = draw_tensor(Shape({32, 64}));
    const auto lines = reported([&] {
        ttnn::rdiv(a, 2.0F, std::string("floor"));
        ttnn::div(a, 2.0F, false, std::string("floor"));
        ttnn::split(a, 16, 0);
    });
    expect(lines.size() == 3, "three calls");
    expect_text(lines[0], "\"op\": \"rdiv\"");
    expect_text(lines[1], "\"op\": \"div\"");
    expect_text(lines[2],
                "[{\"shape\": [16, 64], \"data_type\": \"FLOAT32\", \"bytes\": 8192, \"page\": ");
    expect_text(lines[2], "}, {\"shape\": [16, 64], ");
}

void test_a_call_that_fails_has_no_line_and_the_next_one_has() {
    const Tensor a = draw_tensor(Shape({32, 64}));
    const auto lines = reported([&] {
        expect_refused([&] { ttnn::matmul(a, a); }, "");
        ttnn::relu(a);
    });
    expect(lines.size() == 1, "one call");
    expect_text(lines[0], "\"op\": \"relu\"");
    expect(reported([] {}).empty(), "no calls");
}

void test_results_are_written() {
    const Tensor a = make_tensor(Shape({2, 3}), {0, 1, 2, 3, 4, 5}, DataType::BFLOAT16);
    setenv("TTCODEGEN_CALL_TENSORS", folder.c_str(), 1);
    const auto lines = reported([&] { ttnn::neg(a); });
    unsetenv("TTCODEGEN_CALL_TENSORS");
    const std::string mark = "\"file\": \"";
    const std::size_t begin = lines.at(0).find(mark) + mark.size();
    const std::string name = lines[0].substr(begin, lines[0].find('"', begin) - begin);
    const std::string file = text_of(folder / name);
    expect(file.size() == 128 + 6 * sizeof(float) && file[127] == '\n', "the header's size");
    expect_text(file, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
    for (std::size_t i = 0; i < 6; ++i) {
        float value = 0;
        std::memcpy(&value, file.data() + 128 + i * sizeof(float), sizeof(float));
        expect(value == -static_cast<float>(i), "an element");
    }
}

}  // namespace

int main() {
    std::filesystem::create_directories(folder);
    test_each_call_has_a_line();
    test_calls_of_an_operation_have_none();
    test_a_call_that_fails_has_no_line_and_the_next_one_has();
    test_results_are_written();
    std::filesystem::remove_all(folder);
}
