"""What every room may lean on: problems, ids, clocks, secret values, digests, log set-up."""
