"""Files that mean harm, or were damaged: inputs for `fuzz.py` and for the tests.

A reader takes a folder of files. Each has valid inputs, a way to spoil one of them that keeps as much of its
structure as it can (checksums are made right again, so that what lies behind them is reached), and cases
written by hand: payloads, bombs, ways out of an archive, claims of enormous sizes.
"""
