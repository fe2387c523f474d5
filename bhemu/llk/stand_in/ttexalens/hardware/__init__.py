"""Parts of the chip as tt-exalens names them."""
