#pragma once

#include "ttcodegen/device/compute_types.hpp"
