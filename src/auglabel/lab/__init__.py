"""Everything that touches disk, clock or processes."""
