"""Mistakes of whoever calls: these end with a sentence that says the way out, all others are defects of ours.

The command line prints the sentence alone for these, and a traceback for every other exception.
"""


class UserError(ValueError):
    """A value, a file or a setting that cannot be used as it is; the message says what to do about it."""


class UserTypeError(UserError, TypeError):
    """The same for a value of the wrong type."""
