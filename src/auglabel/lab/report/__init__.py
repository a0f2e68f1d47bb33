"""`auglabel report`: one page, complete in itself, that compares runs."""
