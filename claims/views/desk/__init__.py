"""The parts of the request form, one module each: what a part shows for a wish, a fleet and what is wrong.

They decide nothing: rules and numbers come from services and selectors.
"""
