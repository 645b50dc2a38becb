"""From lowered modules to the sources of a project, and how the project describes them."""
