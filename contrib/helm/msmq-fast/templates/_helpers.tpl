{{- define "msmq-fast.labels" -}}
app.kubernetes.io/name: msmq-fast
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "msmq-fast.selector" -}}
app.kubernetes.io/name: msmq-fast
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "msmq-fast.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "msmq-fast.computer" -}}
{{- $name := .Values.server.name | default (printf "%s-0" .Release.Name) -}}
{{- if gt (len $name) 15 }}{{ fail (printf "computer name %q: 15 characters at most; set server.name" $name) }}{{ end -}}
{{ $name }}
{{- end -}}

{{/* The published ports, one JSON list of {name, port, protocol}. */}}
{{- define "msmq-fast.ports" -}}
{{- $all := list -}}
{{- range $entry := list (list "messages" .Values.ports.messages "TCP") (list "ping" .Values.ports.ping "UDP") (list "endpoint-mapper" .Values.ports.endpointMapper "TCP") (list "remote-read" .Values.ports.remoteRead "TCP") (list "qm2qm" .Values.ports.qm2qm "TCP") (list "http" .Values.ports.http "TCP") (list "https" .Values.ports.https "TCP") -}}
{{- if index $entry 1 -}}
{{- $all = append $all (dict "name" (index $entry 0) "port" (int (index $entry 1)) "protocol" (index $entry 2)) -}}
{{- end -}}
{{- end -}}
{{ dict "ports" $all | toJson }}
{{- end -}}

{{/* The security context of every container. */}}
{{- define "msmq-fast.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "msmq-fast.restore" -}}
{{- required "restore.enabled needs restore.url or backup.url" (.Values.restore.url | default .Values.backup.url) -}}
{{- end -}}

{{/* Labels of the pod of `helm test`, which is not one of the server. */}}
{{- define "msmq-fast.test" -}}
app.kubernetes.io/name: msmq-fast-test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
