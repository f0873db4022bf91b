{{- define "labels" -}}
app.kubernetes.io/name: llm-gateway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "metadata" -}}
name: {{ .Release.Name }}
labels:
  {{- include "labels" . | nindent 2 }}
{{- end -}}
