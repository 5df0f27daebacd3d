"""pluginregistration, the only version in use."""
