"""Addresses of the request form, of GPU requests and of claims."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from claims.views import claims, downloads, form, gpuclasseditor, gpuclasses, requests, validation

app_name = "claims"

urlpatterns: list[URLPattern | URLResolver] = [
    path("request/", form.form, name="form"),
    path("request/paste", form.paste_manifest, name="paste"),
    path("request/validate", validation.validate_wish, name="validate"),
    path("request/bundle.zip", downloads.bundle, name="bundle"),
    path("request/manifest.yaml", downloads.together, name="manifest"),
    path("request/<str:name>", downloads.file, name="file"),
    path("requests/", requests.requests, name="requests"),
    path("requests/<int:pk>/", requests.detail, name="request"),
    path("requests/<int:pk>/template.yaml", requests.created_file, name="created-file"),
    path("requests/<int:pk>/withdraw/", requests.withdraw_request, name="withdraw"),
    path("claims/", claims.claims, name="claims"),
    path("gpu-classes/", gpuclasses.gpu_classes, name="gpu-classes"),
    path("gpu-classes/+new/", gpuclasseditor.new, name="gpu-class-new"),
    path("gpu-classes/<str:name>/", gpuclasses.gpu_class, name="gpu-class"),
    path("gpu-classes/<str:name>/edit/", gpuclasseditor.edit, name="gpu-class-edit"),
    path("gpu-classes/<str:name>/delete/", gpuclasseditor.delete, name="gpu-class-delete"),
]
