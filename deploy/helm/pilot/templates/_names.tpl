{{- define "pilot.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains "pilot" .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-pilot" (.Release.Name | trunc 46 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{- /* What a selector may contain: it can never be changed. */ -}}
{{- define "pilot.labels" -}}
{app.kubernetes.io/name: pilot, app.kubernetes.io/instance: {{ .Release.Name | quote }}}
{{- end -}}

{{- define "pilot.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end -}}

{{- define "pilot.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "pilot.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "pilot.isShared" -}}
{{- if eq .Values.store.kind "postgres" -}}yes{{- end -}}
{{- end -}}
