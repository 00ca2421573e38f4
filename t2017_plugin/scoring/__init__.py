"""The two BLEUs of a translation: sacreBLEU on raw text, and the paper's on tokens with compounds split."""
