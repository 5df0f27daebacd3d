"""NodeWatchResources: one package per version of the API."""
