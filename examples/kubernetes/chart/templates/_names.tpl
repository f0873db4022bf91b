{{- define "labels" -}}
app.kubernetes.io/name: llm-gateway
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "metadata" -}}
name: {{ .Release.Name | quote }}
labels:
  {{- include "labels" . | nindent 2 }}
{{- end -}}
