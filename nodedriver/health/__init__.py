"""Health of the cards: what was seen, what it means, the taints that say so, and when they are lifted.

`xids` is the table, `ailments` the pure part, `report` what the kubelet is told, `record` the file that outlives a
restart, `monitor` the thread.
"""
