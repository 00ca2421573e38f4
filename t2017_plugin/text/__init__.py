"""Raw text to tokens, BPE units and back."""
