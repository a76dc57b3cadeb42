"""The Stack on the customer's machine: its folder, its supervisor, its reports."""
