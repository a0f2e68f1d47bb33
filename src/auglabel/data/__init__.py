"""Images to train and measure on; each module is one source."""
