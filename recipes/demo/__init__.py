"""The main job on real text: Home Assistant, English to German."""
