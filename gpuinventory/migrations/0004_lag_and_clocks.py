from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def list_pods_anew(apps: StateApps, _: BaseDatabaseSchemaEditor) -> None:
    """More of a pod is kept than before; without a version its kind is listed again."""
    apps.get_model("gpuinventory", "StreamCursor").objects.filter(kind="Pod").update(resource_version="")


class Migration(migrations.Migration):
    dependencies = [
        ("gpuinventory", "0003_change_log"),
    ]

    operations = [
        migrations.AddField(
            model_name="streamcursor",
            name="changed_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="streamcursor",
            name="clock_ahead",
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name="streamcursor",
            name="lag",
            field=models.FloatField(null=True),
        ),
        migrations.RunPython(list_pods_anew, migrations.RunPython.noop),
    ]
