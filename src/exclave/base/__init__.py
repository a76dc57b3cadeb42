"""Foundations for all packages: problems, ids, clocks, secret values, digests, log set-up."""
