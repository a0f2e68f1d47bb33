"""Runs as methods: what each reached, which differ, and which one to use."""
