#pragma once

#include "embedding_device_operation_types.hpp"
