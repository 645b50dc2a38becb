/// The last line of each kernel: what the backend looks for in the shared object.
#pragma once

#include "ttcodegen/device/kernel_stores.hpp"

extern "C" __attribute__((visibility("default"))) void ttcodegen_kernel() { kernel_main(); }
