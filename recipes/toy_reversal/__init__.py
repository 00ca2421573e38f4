"""The smallest whole job: sequences of digits, reversed."""
