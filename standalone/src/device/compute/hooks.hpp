/// Interface of the compute side of the device to the program runner.
#pragma once

#include "ttcodegen/device/processor.hpp"

namespace ttcodegen::device {

/// The implementation of api/compute.
const ComputeFunctions* compute_functions();

/// The registers of one core's compute processor; kept from program to program.
ComputeState* create_compute_state();
void destroy_compute_state(ComputeState* state);

/// Called on the fiber of a compute kernel before and after its main function: the first resets the
/// state of an earlier kernel, the second refuses a kernel that ends with DST in use.
void begin_compute_kernel(Processor& processor);
void end_compute_kernel(Processor& processor);

}  // namespace ttcodegen::device
