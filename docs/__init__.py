"""The documentation; `docs.site` makes the site of it."""
