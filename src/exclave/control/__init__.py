"""Use cases by noun: authorise, load, decide, save and enqueue in one transaction."""
