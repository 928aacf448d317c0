"""Read files from outside within limits, write files atomically, and cache them."""
