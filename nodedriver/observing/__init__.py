"""What those see who watch the driver: `pages` says what is on `/metrics` and `/healthz`, `door` is the HTTP."""
