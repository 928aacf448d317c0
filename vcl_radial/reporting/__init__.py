"""Write tables, pictures and pages of finished runs."""
