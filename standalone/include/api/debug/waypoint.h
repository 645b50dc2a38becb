#pragma once

// The card writes these for a debugger to see; diagnostics here name source lines instead.
#define WAYPOINT(text)
