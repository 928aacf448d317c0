"""Pages of the papers that came before the radial posterior."""
