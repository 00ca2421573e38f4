"""WMT14 English to German."""
