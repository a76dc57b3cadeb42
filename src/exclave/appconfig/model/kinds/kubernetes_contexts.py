"""`kubernetes_contexts.toml`, `kubernetes_contexts/`: clusters besides that of the sandbox."""

from exclave.appconfig.model.fields import NEW, REQUIRED, Table, tables, text


class KubernetesContext(Table):
    """A cluster that a component makes."""

    name: str = text("Unique; components and actions name it.", '"edge"', need=REQUIRED, since=NEW)
    component: str = text(
        "A terraform_module or pulumi component with an output object `cluster`.",
        '"edge_cluster"',
        need=REQUIRED,
        since=NEW,
    )


class KubernetesContextsFile(Table):
    """All further clusters in one file."""

    kubernetes_context: tuple[KubernetesContext, ...] = tables(
        KubernetesContext, "The clusters.", since=NEW
    )
