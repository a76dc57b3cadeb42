"""The Stack of an install in Azure."""
