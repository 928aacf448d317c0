"""What `make docs` adds to the pages: galleries and references that are made of the code."""
