"""The cloud that the runner's machine is in: its metadata, signatures, proof of identity."""
