"""LeNet-5 pruned by the radii of its rows and columns: RDP, Table 2."""
