"""What the two WMT14 recipes share: corpora, downloads, cleaning, BPE, the miniature mirror."""
