"""The model of section 3 as fairseq sees it: settings, registration, named architectures."""
