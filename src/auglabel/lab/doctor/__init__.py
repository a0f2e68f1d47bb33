"""What is wrong with an installation, and which precision is fastest here."""
