"""Augmentations: each cuts its distance into buckets and can revisit any of them."""
