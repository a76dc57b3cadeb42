"""The Stack in Azure's own language: one template of Azure Resource Manager, in JSON."""
