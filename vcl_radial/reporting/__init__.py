"""Tables, pictures and pages of finished runs."""
