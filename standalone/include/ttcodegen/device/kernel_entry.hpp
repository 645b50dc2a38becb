/// The last line of each kernel: what the backend looks for in the shared object.
#pragma once

extern "C" __attribute__((visibility("default"))) void ttcodegen_kernel() { kernel_main(); }
