// In place of the library's header: only assertions need sizes of circular buffers.
#pragma once
