"""Use cases of the sync: keep rows equal to what the cluster lists, batch by batch, under a lease."""
