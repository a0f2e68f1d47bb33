"""AutoLabel inside other people's training loops. Each module is imported by name, with what it needs."""
