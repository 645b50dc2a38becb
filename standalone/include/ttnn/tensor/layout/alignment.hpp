#pragma once

#include "tt-metalium/experimental/tensor/spec/layout/alignment.hpp"
