"""Workflows and jobs as users see and steer them."""
