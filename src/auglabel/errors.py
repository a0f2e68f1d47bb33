"""Mistakes of whoever calls: these end with a sentence that says the way out, all others are defects of ours.

The command line prints the sentence alone for these, and a traceback for every other exception.
"""


class UserError(ValueError):
    """A value, a file or a setting that cannot be used as it is; the message says what to do about it."""


class UserTypeError(UserError, TypeError):
    """The same for a value of the wrong type."""


def lacks_memory(error: Exception) -> bool:
    """Whether Python says so, or torch does, for which that is one of many errors of a kind."""
    words = ("out of memory", "allocate memory", "not enough memory")
    return isinstance(error, MemoryError) or any(each in str(error).lower() for each in words)
