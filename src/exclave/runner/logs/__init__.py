"""From a child's pipe to the control plane: masked, numbered, spooled, uploaded."""
