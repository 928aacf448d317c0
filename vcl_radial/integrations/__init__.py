"""Integrations with optional packages."""
