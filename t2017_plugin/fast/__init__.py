"""The numbers of `paper`, computed faster."""
