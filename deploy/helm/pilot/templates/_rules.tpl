{{- /* What the schema cannot say: rules about two values. Each message says what to change. */ -}}
{{- define "pilot.rules" -}}
{{- if and (not (include "pilot.isShared" .)) (gt (int .Values.replicas) 1) -}}
{{- fail "\n\nThe embedded store has one writer: set replicas to 1, or store.kind to postgres.\n" -}}
{{- end -}}
{{- if and (include "pilot.isShared" .) (not .Values.keys.existingSecret) -}}
{{- fail "\n\nWith store.kind postgres all pods sign with the same key: create a Secret with log.key, and name it in keys.existingSecret.\ndocs/operate/kubernetes.md has the commands.\n" -}}
{{- end -}}
{{- if and (include "pilot.isShared" .) (not .Values.config) (not .Values.store.postgres.existingSecret) -}}
{{- fail "\n\nWith store.kind postgres, store.postgres.existingSecret must name the Secret with the database's URL.\n" -}}
{{- end -}}
{{- if and .Values.keys.permitKey (not .Values.keys.existingSecret) -}}
{{- fail "\n\nkeys.permitKey is a key in the Secret that keys.existingSecret names, but none is named.\n" -}}
{{- end -}}
{{- if and .Values.adopt (not (include "pilot.isShared" .)) -}}
{{- fail "\n\nadopt is for several pods: with the embedded store a restart is enough. Set adopt to false.\n" -}}
{{- end -}}
{{- if and .Values.config .Values.extraConfig -}}
{{- fail "\n\nconfig is the whole of pilot.toml, so extraConfig would be ignored: put it into config.\n" -}}
{{- end -}}
{{- if and (eq .Values.identity.mechanism "mutual_tls") (not .Values.secrets.clientCa.name) (not .Values.config) -}}
{{- fail "\n\nWith identity.mechanism mutual_tls, secrets.clientCa must name the Secret with the issuers of client certificates.\n" -}}
{{- end -}}
{{- if and .Values.secrets.crl.name (not .Values.secrets.clientCa.name) -}}
{{- fail "\n\nsecrets.crl is for client certificates: set secrets.clientCa too.\n" -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled .Values.networkPolicy.enabled (not .Values.networkPolicy.opsFrom) -}}
{{- fail "\n\nThe NetworkPolicy lets nobody reach the ops port, so Prometheus could not read the metrics: set networkPolicy.opsFrom.\n" -}}
{{- end -}}
{{- if and .Values.service.externalTrafficPolicy (eq .Values.service.type "ClusterIP") -}}
{{- fail "\n\nservice.externalTrafficPolicy needs service.type LoadBalancer or NodePort.\n" -}}
{{- end -}}
{{- end -}}
