"""System and device of a module, and whether it fits the device's memory."""
