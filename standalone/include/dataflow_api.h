#pragma once

// The name that kernels written for earlier releases use.
#include "api/dataflow/dataflow_api.h"
