{{- define "gatewayfilter.name" -}}
{{- printf "%s-gatewayfilter" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "gatewayfilter.labels" -}}
app.kubernetes.io/name: gatewayfilter
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "gatewayfilter.selector" -}}
app.kubernetes.io/name: gatewayfilter
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "gatewayfilter.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "gatewayfilter.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "gatewayfilter.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Environment of every pod of the filter: settings, and addresses with passwords from secrets. */}}
{{- define "gatewayfilter.env" -}}
{{- range $name, $value := .Values.settings }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- if .Values.store.existingSecret }}
- name: GATEWAYFILTER_STORE__URL
  valueFrom: {secretKeyRef: {name: {{ .Values.store.existingSecret }}, key: {{ .Values.store.key }}}}
{{- else if .Values.bundled.postgres.enabled }}
- name: GATEWAYFILTER_STORE__URL
  valueFrom: {secretKeyRef: {name: {{ include "gatewayfilter.name" . }}-bundled, key: store-url}}
{{- end }}
{{- if or .Values.redis.existingSecret .Values.bundled.redis.enabled }}
{{- $secret := .Values.redis.existingSecret | default (printf "%s-bundled" (include "gatewayfilter.name" .)) }}
{{- $key := ternary .Values.redis.key "redis-url" (ne .Values.redis.existingSecret "") }}
- name: GATEWAYFILTER_CACHE__URL
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: {{ $key }}}}
- name: GATEWAYFILTER_QUEUE__URL
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: {{ $key }}}}
{{- end }}
{{- if .Values.fingerprints.existingSecret }}
- {name: GATEWAYFILTER_CACHE__KEY_FILE, value: /etc/gatewayfilter/fingerprints.key}
{{- end }}
{{- end -}}

{{- define "gatewayfilter.mounts" -}}
- {name: state, mountPath: /var/lib/gatewayfilter}
- {name: tmp, mountPath: /tmp}
{{- if .Values.fingerprints.existingSecret }}
- {name: fingerprints, mountPath: /etc/gatewayfilter, readOnly: true}
{{- end }}
{{- end -}}

{{- define "gatewayfilter.volumes" -}}
- name: tmp
  emptyDir: {medium: Memory, sizeLimit: 64Mi}
{{- if .Values.fingerprints.existingSecret }}
- name: fingerprints
  secret: {secretName: {{ .Values.fingerprints.existingSecret }}, defaultMode: 0440}
{{- end }}
{{- end -}}

{{- define "gatewayfilter.scheduling" -}}
serviceAccountName: {{ include "gatewayfilter.name" . }}
automountServiceAccountToken: false
terminationGracePeriodSeconds: 30
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- end -}}
