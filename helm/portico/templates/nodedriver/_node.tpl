{{/* What the driver and the MPS supervisor share: both are root on the node, since NVML, device nodes and MPS ask for it. */}}

{{- define "portico.nodeSpec" -}}
# MPS servers must find their own process ids in /proc, and the driver looks for processes on a card.
hostPID: true
priorityClassName: system-node-critical
{{- include "portico.placement" .Values.nodeDriver }}
{{- end }}

{{- define "portico.nodeSecurity" -}}
securityContext:
  privileged: true
  runAsUser: 0
  readOnlyRootFilesystem: true
{{- end }}

{{/* Folders keep their node's path where a path is handed to the kubelet, the container runtime or MPS clients. */}}
{{- define "portico.nodeEnv" -}}
- name: NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
- name: PORTICO_DRIVER_NAME
  value: {{ .Values.driverName | quote }}
- name: PORTICO_KUBELET_DIR
  value: {{ .Values.nodeDriver.kubeletDir | quote }}
- name: PORTICO_CDI_DIR
  value: {{ .Values.nodeDriver.cdiDir | quote }}
- name: PORTICO_DRIVER_ROOT
  value: /driver-root
- name: PORTICO_HOST_DRIVER_ROOT
  value: {{ .Values.nodeDriver.driverRoot | quote }}
- name: PORTICO_PROC_ROOT
  value: /host/proc
- name: PORTICO_LOG_LEVEL
  value: {{ .Values.nodeDriver.logLevel | quote }}
{{- end }}

{{- define "portico.pluginDir" -}}
{{- printf "%s/plugins/%s" .Values.nodeDriver.kubeletDir .Values.driverName -}}
{{- end }}

{{- define "portico.nodeMounts" -}}
- {name: dev, mountPath: /dev}
- {name: sys, mountPath: /sys}
- {name: proc, mountPath: /host/proc}
- {name: driver-root, mountPath: /driver-root, readOnly: true, mountPropagation: HostToContainer}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "portico.nodeVolumes" -}}
- name: plugin
  hostPath: {path: {{ include "portico.pluginDir" . }}, type: DirectoryOrCreate}
- name: dev
  hostPath: {path: /dev, type: Directory}
- name: sys
  hostPath: {path: /sys, type: Directory}
- name: proc
  hostPath: {path: /proc, type: Directory}
- name: driver-root
  hostPath: {path: {{ .Values.nodeDriver.driverRoot }}, type: Directory}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- end }}
