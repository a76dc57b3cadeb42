"""How each kind of job is done."""
