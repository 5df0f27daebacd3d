{{/* Every name of the chart is made here and only here. Components: web, worker, driver, mpsd, team, operators, person. */}}

{{/* Objects in the release's namespace. Call with (list . "web"). */}}
{{- define "portico.name" -}}
{{- printf "%s-%s" (index . 0).Release.Name (index . 1) -}}
{{- end }}

{{/* Objects without a namespace, which two releases must not share; a valid DNS subdomain, as admission policies ask. */}}
{{- define "portico.clusterName" -}}
{{- printf "%s-%s-%s" (index . 0).Release.Namespace (index . 0).Release.Name (index . 1) -}}
{{- end }}

{{/* Labels by which a workload finds its pods; they never change. */}}
{{- define "portico.selector" -}}
app.kubernetes.io/name: portico
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "portico.labels" -}}
{{ include "portico.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ (index . 0).Chart.Name }}-{{ (index . 0).Chart.Version }}
{{- end }}

{{/* The full user name of a component's ServiceAccount, as the API server sees it. */}}
{{- define "portico.userName" -}}
{{- printf "system:serviceaccount:%s:%s" (index . 0).Release.Namespace (include "portico.name" .) -}}
{{- end }}

{{/* The group of a team, or of the operators. Call with (list . "ml-team"). */}}
{{- define "portico.group" -}}
{{- printf "%s%s" (index . 0).Values.prefix (index . 1) -}}
{{- end }}

{{- define "portico.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end }}

{{/* The namespaces of all teams, each once, as a JSON list: two teams may share one. */}}
{{- define "portico.teamNamespaces" -}}
{{- $all := list -}}
{{- range .Values.teams }}{{ $all = concat $all .namespaces }}{{ end -}}
{{- $all | uniq | sortAlpha | toJson -}}
{{- end }}
