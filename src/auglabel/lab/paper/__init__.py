"""Every table and figure of the paper by name: what it rests on, and what became of its claims."""
