#pragma once

namespace tt {

using ChipId = int;

}  // namespace tt
