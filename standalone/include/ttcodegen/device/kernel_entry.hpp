/// The last include of each kernel: the entry point that the backend loads from the shared object.
#pragma once

#include "ttcodegen/device/kernel_stores.hpp"

extern "C" __attribute__((visibility("default"))) void ttcodegen_kernel() { kernel_main(); }
