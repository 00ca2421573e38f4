"""WMT14 English to French."""
