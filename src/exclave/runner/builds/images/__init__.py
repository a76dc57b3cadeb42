"""Builds of images: copies of images from elsewhere, pinned to their digest."""
