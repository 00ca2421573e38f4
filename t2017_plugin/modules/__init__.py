"""The parts of the model, each named after its place in section 3 of the paper."""
