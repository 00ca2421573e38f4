"""What every recipe shares."""
