"""Every setting of the portal, read from the environment here and nowhere else.

No ladder of development and production files: `tests/settings.py` only tightens. What each variable means stands in
docs/dev/settings.md; wrong values are met by `portal.checks`.
"""

from __future__ import annotations

import os
from pathlib import Path
from zlib import crc32

from django.utils.csp import CSP

from portal.env import Env

BASE_DIR = Path(__file__).resolve().parent.parent
_env = Env(os.environ)

VERSION = "0.1.0"

# What must not be known to others, and who may call.
SECRET_KEY = _env.secret("PORTICO_SECRET_KEY")
DEBUG = _env.flag("PORTICO_DEBUG", default=False)
ALLOWED_HOSTS = _env.names("PORTICO_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
HTTPS = _env.flag("PORTICO_HTTPS", default=False)

# The cluster.
KUBECONFIG = _env.text("PORTICO_KUBECONFIG")
IMPERSONATION_PREFIX = _env.text("PORTICO_IMPERSONATION_PREFIX", "portico:")
WATCH_SECONDS = _env.number("PORTICO_WATCH_SECONDS", 30, least=1, most=60)
SWEEP_SECONDS = _env.number("PORTICO_SWEEP_SECONDS", 10, least=1, most=300)
PROBE_NAMESPACE = _env.text("PORTICO_PROBE_NAMESPACE", "default")
SILENT_SECONDS = _env.number("PORTICO_SILENT_SECONDS", 120, least=5, most=3600)

# The kubeconfig of a simulator's administrator, for the time of its actors: makes this portal a demo without a login.
DEMO = _env.text("PORTICO_DEMO")

# Data.
DATABASES = {"default": _env.database("PORTICO_DATABASE_URL", f"sqlite:///{BASE_DIR / 'portico.sqlite3'}")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Workers. A task carries names and keys only; the row says what is due, so results are not kept.
CELERY_BROKER_URL = _env.secret("PORTICO_BROKER_URL", "memory://")
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# Tasks that every worker nudges each SWEEP_SECONDS (see portal.celery).
SWEEPS = ("gpuinventory.tasks.sweep", "claims.tasks.sweep")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "portal",
    "gpuinventory",
    "claims",
]

# Each is able to run async: one that is not makes streams unsafe under ASGI.
MIDDLEWARE = [
    "portal.middleware.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    # Pages are long texts that repeat. Django masks its tokens and pads at random, so that lengths tell nothing.
    "django.middleware.gzip.GZipMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "portal.demourls" if DEMO else "portal.urls"
ASGI_APPLICATION = "portal.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "builtins": ["django.templatetags.static", "portal.templatetags.portal_ui"],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "portal.context.chrome",
                "gpuinventory.context.freshness",
            ],
        },
    }
]

# People.
AUTH_USER_MODEL = "portal.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "portal:sign-in"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "portal:sign-in"

# Times are shown with their zone; the cluster's own are UTC.
LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]

# Nothing inline, nothing from elsewhere, no frames, forms to ourselves only.
SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF],
    "font-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "frame-ancestors": [CSP.NONE],
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
# Cookies know no ports: two demos on one machine would sign each other out.
SESSION_COOKIE_NAME = f"sessionid{crc32(DEMO.encode()) or ''}"
CSRF_COOKIE_NAME = f"csrftoken{crc32(DEMO.encode()) or ''}"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "portal.views.csrf_failure"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in ALLOWED_HOSTS if HTTPS and host != "*"]

# Logs: structlog renders everything, Django's and Celery's records included (portal.apps).
LOGGING_CONFIG = None
LOG_FORMAT = _env.text("PORTICO_LOG_FORMAT", "json")
LOG_LEVEL = _env.text("PORTICO_LOG_LEVEL", "INFO").upper()
