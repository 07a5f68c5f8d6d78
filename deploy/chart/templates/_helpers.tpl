{{- /* The image, by digest where one is given. */ -}}
{{- define "pinfold.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Where a workload may run: (list $ .Values.<workload>). */ -}}
{{- define "pinfold.placement" -}}
{{- $root := index . 0 -}}
{{- $workload := index . 1 -}}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $workload.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $workload.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* The mode policy has no webhook, and its parameters come from the operator. */ -}}
{{- define "pinfold.hasWebhook" -}}
{{- if and (ne .Values.admission.mode "webhook") (not .Values.operator.enabled) }}
{{- fail "admission.mode policy and both need operator.enabled: the operator writes the parameters of the policies" }}
{{- end }}
{{- if and .Values.webhook.enabled (ne .Values.admission.mode "policy") }}true{{ end -}}
{{- end -}}

{{- /* OpenShift has the CRDs of the cluster flag and of profiles itself. */ -}}
{{- define "pinfold.ownCRDs" -}}
{{- if and .Values.crds.create (ne .Values.distribution "openshift") }}true{{ end -}}
{{- end -}}

{{- /* Distributions with an overlay of their own; inside a container the agent cannot detect them. */ -}}
{{- define "pinfold.hasPreset" -}}
{{- if has .Values.distribution (list "k3s" "rke2" "microk8s" "talos") }}true{{ end -}}
{{- end -}}

{{- /* A directory of the host that the agent reads in addition. */ -}}
{{- define "pinfold.distroDir" -}}
{{- get (dict "k3s" "/var/lib/rancher/k3s/agent" "rke2" "/var/lib/rancher/rke2/agent" "microk8s" "/var/snap/microk8s") .Values.distribution -}}
{{- end -}}

{{- /* The rules of the webhook's NetworkPolicy. Without addresses only the port is restricted: those of the API server and of the
kubelets cannot be named in every cluster. */ -}}
{{- define "pinfold.webhookTraffic" -}}
{{- with .Values.networkPolicy }}
{{- if .nodeCIDRs }}
policyTypes: [Ingress, Egress]
ingress:
  - ports: [{protocol: TCP, port: https}]
    from:
      {{- range .nodeCIDRs }}
      - ipBlock: {cidr: {{ . | quote }}}
      {{- end }}
      {{- with .prometheusNamespace }}
      - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ . }}}}
      {{- end }}
      {{- with .extraSources }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
egress:
  - ports:
      {{- range .apiServerPorts }}
      - {protocol: TCP, port: {{ . }}}
      {{- end }}
    to:
      {{- range .nodeCIDRs }}
      - ipBlock: {cidr: {{ . | quote }}}
      {{- end }}
  - ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]
    to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ .dnsNamespace }}}}}]
{{- else }}
policyTypes: [Ingress]
ingress:
  - ports: [{protocol: TCP, port: https}]
{{- end }}
{{- end }}
{{- end -}}
