"""What the cluster has: a read model of its DRA objects, kept equal by stream tasks, and the pages that show devices.

The database can be dropped and rebuilt; Kubernetes is the truth. Other apps use selectors and services, never models.
"""
