"""NodePrepareResources and NodeUnprepareResources: one package per version of the API."""
