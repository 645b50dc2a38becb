#pragma once

// TTNN(relu) is "relu" and a function object that calls whatever overload of ttnn::relu fits.
#define TTNN(name) #name, [](const auto&... arguments) { return ttnn::name(arguments...); }
