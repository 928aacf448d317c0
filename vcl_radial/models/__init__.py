"""The model that a finished run keeps: its files, and predictions from them."""
