"""The tables and figures of the paper, and what became of its claims, made from results."""
