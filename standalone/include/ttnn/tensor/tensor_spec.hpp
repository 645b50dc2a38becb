#pragma once

#include "tt-metalium/experimental/tensor/spec/tensor_spec.hpp"
