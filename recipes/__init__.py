"""Recipes: numbered shell scripts that run a whole job, and their Python helpers."""
