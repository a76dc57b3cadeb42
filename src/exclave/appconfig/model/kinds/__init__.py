"""Every file kind of the format as a typed value; the field descriptions are its only table."""
