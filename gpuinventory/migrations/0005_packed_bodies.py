import zlib

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

import gpuinventory.models

_BATCH = 200


def pack(apps: StateApps, _: BaseDatabaseSchemaEditor | None) -> None:
    """Bodies were stored as received; the column stays what it is."""
    objects = apps.get_model("gpuinventory", "ClusterObject").objects
    keys = list(objects.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(keys), _BATCH):
        rows = list(objects.filter(pk__in=keys[start : start + _BATCH]))
        for row in rows:
            row.body = zlib.compress(bytes(row.body), level=1)
        objects.bulk_update(rows, ["body"])


class Migration(migrations.Migration):
    dependencies = [
        ("gpuinventory", "0004_lag_and_clocks"),
    ]

    operations = [
        migrations.RunPython(pack, elidable=True),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="clusterobject",
                    name="body",
                    field=gpuinventory.models.PackedField(),
                ),
            ],
        ),
    ]
