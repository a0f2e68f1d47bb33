"""Which augmentations keep their label, as any trained network sees them."""
