#pragma once

// Compatibility header for kernels written for earlier releases.
#include "api/dataflow/dataflow_api.h"
