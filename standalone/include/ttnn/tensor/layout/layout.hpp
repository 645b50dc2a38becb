#pragma once

#include "tt-metalium/experimental/tensor/spec/layout/layout.hpp"
