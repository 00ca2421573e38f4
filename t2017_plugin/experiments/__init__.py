"""Settings files, runs, logs, what training costs, and runs side by side."""
