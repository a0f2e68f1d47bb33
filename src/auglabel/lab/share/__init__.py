"""A finished run as a folder for others, in Hugging Face's layout."""
