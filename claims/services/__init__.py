"""What can be done about GPU requests: one use case a file, named by its verb, called by pages and tasks alike.

Each owns its rights, rules, transaction and audit line; none sees a web request, a template or Celery.
"""
