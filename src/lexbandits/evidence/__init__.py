"""What data prove: widths, mixtures, intervals and the faces of a cone."""
