#pragma once

#include "tt-metalium/experimental/tensor/spec/memory_config/memory_config.hpp"
