{{- /* pilot.toml. Paths are the same whatever the Secrets are called. */ -}}
{{- define "pilot.configuration" -}}
{{- if .Values.config -}}
{{ .Values.config | trim }}
{{- else -}}
profile  = "production"
listen   = "0.0.0.0:7450"
data_dir = "/var/lib/pilot/data"

[store]
{{- if include "pilot.isShared" . }}
# The URL is in a Secret, and comes as PILOT_STORE__URL.
{{- if .Values.store.postgres.passwordKey }}
password_file = "/etc/pilot/secrets/database-password"
{{- end }}
ca_file       = "/etc/pilot/secrets/database-ca.pem"
{{- else }}
url = "sqlite:pilot.db"
{{- end }}

[identity]
mechanism = {{ .Values.identity.mechanism | quote }}

[credentials]
{{- if eq .Values.identity.mechanism "credential_file" }}
file     = "/etc/pilot/secrets/credentials.json"
{{- end }}
role_map = "/etc/pilot/secrets/role-map.json"

[tls]
certificate = "/etc/pilot/secrets/tls.pem"
key         = "/etc/pilot/secrets/tls.key"
{{- if .Values.secrets.clientCa.name }}
client_ca   = "/etc/pilot/secrets/clients.pem"
{{- end }}
{{- if .Values.secrets.crl.name }}
crl         = "/etc/pilot/secrets/clients.crl"
{{- end }}

[rate_limits]
{{- if .Values.workflows.existingConfigMap }}

[workflows]
dir = "/etc/pilot/workflows"
{{- end }}

# For probes and metrics. No Service with an address exposes this port.
[ops]
listen = "0.0.0.0:7451"
{{- with .Values.extraConfig }}

{{ . | trim }}
{{- end }}
{{- end }}
{{- end -}}
