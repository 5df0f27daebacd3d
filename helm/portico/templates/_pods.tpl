{{/* What pods of several components share. */}}

{{/* Head of a pod's spec. Call with (list . "web"). */}}
{{- define "portico.podHead" -}}
serviceAccountName: {{ include "portico.name" . }}
{{- with (index . 0).Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "portico.containerImage" -}}
image: {{ include "portico.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{/* Web, worker and migration run as a user without rights, on a read-only file system, in Pod Security's level "restricted". */}}
{{- define "portico.restrictedPod" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "portico.restrictedContainer" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* Settings of Django and Celery; secrets come by reference, never as text. */}}
{{- define "portico.portalEnv" -}}
- name: PORTICO_DATABASE_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.secret.name }}, key: {{ .Values.secret.databaseUrlKey }}}}
- name: PORTICO_BROKER_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.secret.name }}, key: {{ .Values.secret.brokerUrlKey }}}}
- name: PORTICO_SECRET_KEY
  valueFrom: {secretKeyRef: {name: {{ .Values.secret.name }}, key: {{ .Values.secret.secretKeyKey }}}}
- name: PORTICO_ALLOWED_HOSTS
  # localhost is how the kubelet's probes and a port-forward ask.
  value: {{ append .Values.web.hosts "localhost" | uniq | join "," | quote }}
- name: PORTICO_HTTPS
  value: {{ .Values.web.https | quote }}
- name: PORTICO_IMPERSONATION_PREFIX
  value: {{ .Values.prefix | quote }}
{{- end }}

{{- define "portico.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
