"""Data files that the package ships."""
