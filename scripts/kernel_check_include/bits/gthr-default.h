// Replaces the host's header, which needs POSIX threads.

#pragma once

#include <bits/gthr-single.h>
