"""Tables that are there already: what they prove at one look."""
