// Stands for the host's header, which asks for the GNU C library.

#pragma once
