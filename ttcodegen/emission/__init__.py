"""From lowered modules to the sources of a project, and what the project tells about them."""
