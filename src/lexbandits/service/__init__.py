"""Studies as a service: an API for workers in any language, a page for people, tokens for both."""
