"""What a workflow does next: pure decisions over stored steps."""
