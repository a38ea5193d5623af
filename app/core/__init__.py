"""DECIDES. Values in, an outcome out.

Standard library only; no input or output, no clock, no randomness: the instant and the drawing of fences are
arguments. Refusals are values, one class each, so that the type checker finds the case a surface forgot.
"""
