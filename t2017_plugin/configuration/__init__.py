"""Settings: files in fairseq's Hydra layout and the command lines they stand for."""
