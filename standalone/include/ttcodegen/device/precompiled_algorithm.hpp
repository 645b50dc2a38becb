/// As precompiled.hpp, for kernels that include `<algorithm>`.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <source_location>
