"""What a runner may do in the account of a customer, in words, and what a new version changes."""
