"""The Stack on the customer's machine: its folder, its supervisor, what it tells about itself."""
