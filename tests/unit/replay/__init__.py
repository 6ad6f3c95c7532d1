"""Rebuilding from the log alone."""
