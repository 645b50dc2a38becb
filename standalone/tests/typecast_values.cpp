// Converts what the standard input lists, a row of `from to number` each, and prints what comes
// out: tests/judges/test_conversions.py compares it with what a card gives.

#include <iostream>
#include <map>
#include <string>

#include "core/typecast.hpp"

namespace cpu = ttcodegen::cpu;
using cpu::DataType;

namespace {

template <typename Element>
typename Element::Stored stored(double number) {
    if constexpr (std::is_same_v<Element, cpu::Bfloat16Element>) {
        return cpu::bf16_bits(static_cast<float>(number));
    } else {
        return static_cast<typename Element::Stored>(number);
    }
}

template <typename Element>
double number(typename Element::Stored stored) {
    if constexpr (std::is_same_v<Element, cpu::Bfloat16Element>) {
        return cpu::bf16_value(stored);
    } else {
        return static_cast<double>(stored);
    }
}

}  // namespace

int main() {
    const std::map<std::string, DataType> types{
        {"f32", DataType::FLOAT32}, {"bf16", DataType::BFLOAT16}, {"si32", DataType::INT32},
        {"ui32", DataType::UINT32}, {"ui16", DataType::UINT16},   {"ui8", DataType::UINT8}};
    std::cout.precision(17);
    for (std::string from, to, given; std::cin >> from >> to >> given;) {
        cpu::with_element(types.at(from), [&](auto source) {
            cpu::with_element(types.at(to), [&](auto element) {
                using Source = decltype(source);
                using Element = decltype(element);
                const auto value = stored<Source>(std::stod(given));
                std::cout << number<Element>(cpu::typecast_element<Element, Source>(value)) << '\n';
            });
        });
    }
}
