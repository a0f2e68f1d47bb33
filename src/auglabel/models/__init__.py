"""Networks that take pixels in [0, 1], or bytes, and normalise them in their first layer."""
