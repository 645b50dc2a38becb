// Replaces the host's header, which needs the GNU C library.

#pragma once
