"""The commands of `auglabel`: their flags, and what they do."""
