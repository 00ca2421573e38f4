"""Models of Tensor2Tensor, as fairseq checkpoints."""
