"""What else a person would try with the same labels."""
