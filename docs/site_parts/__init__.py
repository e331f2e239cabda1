"""What the site is made of, beside its pages. `extension` is the door to Sphinx."""
