#pragma once

// On hardware these are read by a debugger; diagnostics here name source lines instead.
#define WAYPOINT(text)
