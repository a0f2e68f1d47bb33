"""Pictures of buckets and labels, in the terminal and as files."""
