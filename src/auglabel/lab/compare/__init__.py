"""Methods of labelling, trained and measured side by side on one data set."""
