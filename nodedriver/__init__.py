"""The node driver: publishes what a node's GPUs can serve and prepares what the scheduler allocated. Never Django."""
