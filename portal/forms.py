"""The shape of what operators type about people. Rules of names stand in `portal.models`, use cases in services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.password_validation import validate_password

from portal.models import Role, Team, User

if TYPE_CHECKING:
    _UserForm = forms.ModelForm[User]
else:
    _UserForm = forms.ModelForm  # takes no parameter when it runs


class PersonForm(_UserForm):
    """A new local user, in a team if one is chosen."""

    password = forms.CharField(label="Password", widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}))
    team = forms.ModelChoiceField(Team.objects.all(), required=False, empty_label="No team")
    role = forms.ChoiceField(choices=Role.choices, initial=Role.REQUESTER)

    field_order = ("username", "password", "team", "role", "is_operator")

    class Meta:
        model = User
        fields = ("username", "is_operator")

    def clean_password(self) -> str:
        """The password rules of the settings, told at the field."""
        password: str = self.cleaned_data["password"]
        validate_password(password, User(username=self.cleaned_data.get("username", "")))
        return password

    def faults(self) -> list[tuple[str, str, str]]:
        """Field id, label and sentence of everything that is wrong, as `partials/_errors.html` takes them."""
        return [
            (self[name].id_for_label, str(self[name].label), str(sentence))
            for name, sentences in self.errors.items()
            for sentence in sentences
        ]

    def person(self) -> dict[str, Any]:
        """What `services.add_person` takes."""
        return {name: self.cleaned_data[name] for name in ("username", "password", "is_operator")}
