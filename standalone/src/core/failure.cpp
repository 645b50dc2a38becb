#include <charconv>
#include <stdexcept>

#include "tt_stl/assert.hpp"

namespace tt::assert::detail {

namespace {

template <typename T>
std::string text_of_number(T value) {
    char digits[64];
    const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
    return {digits, end};
}

}  // namespace

std::string text_of_integer(long long value) { return text_of_number(value); }
std::string text_of_unsigned(unsigned long long value) { return text_of_number(value); }
std::string text_of_float(double value) { return text_of_number(value); }

std::string format_message(std::string_view format, std::initializer_list<std::string> arguments) {
    std::string message;
    auto argument = arguments.begin();
    for (std::size_t i = 0; i < format.size(); ++i) {
        if (format.substr(i, 2) == "{}" && argument != arguments.end()) {
            message += *argument++;
            ++i;
        } else {
            message += format[i];
        }
    }
    return message;
}

void throw_failure(const char* kind, const std::string& message) {
    throw std::runtime_error(std::string(kind) + ": " + message);
}

}  // namespace tt::assert::detail
