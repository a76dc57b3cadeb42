"""Transactions, group commit, sessions and wake-ups; knows no table."""
