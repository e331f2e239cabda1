"""Methods that map one score to one probability: sigmoids, bins and steps."""
