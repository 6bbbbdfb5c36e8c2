{{- /* The files in /etc/pilot/secrets, one line each. */ -}}
{{- define "pilot.source" -}}
- secret: {name: {{ index . 0 }}, items: [{key: {{ index . 1 }}, path: {{ index . 2 }}}]}
{{- end -}}

{{- define "pilot.sources" -}}
{{- with .Values.secrets }}
{{- $files := list }}
{{- if eq $.Values.identity.mechanism "credential_file" }}
{{- $files = append $files (list .credentials.name .credentials.key "credentials.json") }}
{{- end }}
{{- $files = append $files (list .roleMap.name .roleMap.key "role-map.json") }}
{{- $files = append $files (list .tls.name .tls.certificateKey "tls.pem") }}
{{- $files = append $files (list .tls.name .tls.keyKey "tls.key") }}
{{- if .clientCa.name }}
{{- $files = append $files (list .clientCa.name .clientCa.key "clients.pem") }}
{{- end }}
{{- if .crl.name }}
{{- $files = append $files (list .crl.name .crl.key "clients.crl") }}
{{- end }}
{{- if include "pilot.isShared" $ }}
{{- with $.Values.store.postgres }}
{{- if .passwordKey }}
{{- $files = append $files (list .existingSecret .passwordKey "database-password") }}
{{- end }}
{{- $files = append $files (list .existingSecret .caKey "database-ca.pem") }}
{{- end }}
{{- end }}
{{- range .extra }}
{{- $files = append $files (list .name .key .path) }}
{{- end }}
{{- range $index, $file := $files }}
{{- if $index }}{{ "\n" }}{{ end }}
{{- include "pilot.source" $file }}
{{- end }}
{{- end }}
{{- end -}}
