#pragma once

#include "tt-metalium/experimental/tensor/spec/layout/page_config.hpp"
