from django.db import migrations, models


def mark(apps, schema_editor):
    """Of lines from before it is not known whether they lie in a vault; to take one out that is not there does no harm."""
    apps.get_model("curator_app", "CuratorRun").objects.exclude(activity="").update(is_in_vault=True)


class Migration(migrations.Migration):

    dependencies = [
        ('curator_app', '0001_curator_runs'),
        ('sessions_app', '0012_copies'),
    ]

    operations = [
        migrations.AddField(
            model_name='curatorrun',
            name='is_in_vault',
            field=models.BooleanField(default=False),
        ),
        migrations.RunPython(mark, migrations.RunPython.noop, elidable=True),
        migrations.AddIndex(
            model_name='curatorrun',
            index=models.Index(condition=models.Q(('is_in_vault', True)), fields=['session'], name='curator_lines_in_vaults'),
        ),
    ]
