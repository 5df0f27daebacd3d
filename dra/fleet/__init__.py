"""Questions to a whole fleet: on how many nodes a wish fits, how often in all, and which node is best."""
