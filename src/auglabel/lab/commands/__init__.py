"""The commands of `auglabel`, one module each; registry.py lists them."""
