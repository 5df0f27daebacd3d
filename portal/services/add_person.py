"""Make a local user. The name's rules are checked here, since Django does not check them on saving."""

from __future__ import annotations

import structlog
from django.contrib.auth.password_validation import validate_password

from portal.models import User

_log = structlog.get_logger(__name__)


def add_person(*, username: str, password: str, is_operator: bool = False) -> User:
    """The new user. ValidationError names the rule that the name or the password breaks."""
    user = User(username=username, is_operator=is_operator)
    user.set_password(password)
    user.full_clean()
    validate_password(password, user)
    user.save()
    _log.info("person added", username=username, is_operator=is_operator)
    return user
