"""The paper in torch alone."""
