// Stands for the host's header, which asks for POSIX threads.

#pragma once

#include <bits/gthr-single.h>
