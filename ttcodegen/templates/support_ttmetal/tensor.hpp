#pragma once

#include "support/device_tensor.hpp"
#include "support/tensor_declaration.hpp"
