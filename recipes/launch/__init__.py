"""Starting one training on several GPUs and machines."""
