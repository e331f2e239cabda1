"""Parts of the site beside its pages; `extension` registers them with Sphinx."""
