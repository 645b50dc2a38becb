#pragma once

#include "tt-metalium/experimental/tensor/spec/layout/tensor_layout.hpp"
