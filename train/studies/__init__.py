"""Studies: grids of runs that are planned, cached, carried out in processes or on a cluster, and concluded."""
