// A webhook as a Go team would write it: controller-runtime's server, decoder and patch, and caches
// that hold typed objects as an informer does. It makes the same change to the pods of the benchmark
// as `pinfold webhook`, and is measured against it. Not a product.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	targetPrefix    = "target.workload.openshift.io/"
	resourcesPrefix = "resources.workload.openshift.io/"
	allowed         = "workload.openshift.io/allowed"
	coresSuffix     = ".workload.openshift.io/cores"
)

type handler struct {
	decoder    admission.Decoder
	namespaces cache.Store
	nodes      cache.Store
}

func workloadType(pod *corev1.Pod) string {
	for key := range pod.Annotations {
		if strings.HasPrefix(key, targetPrefix) {
			return strings.TrimPrefix(key, targetPrefix)
		}
	}
	return ""
}

func isGuaranteed(pod *corev1.Pod) bool {
	for i := range pod.Spec.Containers {
		r := &pod.Spec.Containers[i].Resources
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := r.Requests[name], r.Limits[name]
			if limit.IsZero() || request.Cmp(limit) != 0 {
				return false
			}
		}
	}
	return true
}

func convert(pod *corev1.Pod, container *corev1.Container, kind string) {
	request, ok := container.Resources.Requests[corev1.ResourceCPU]
	if !ok {
		return
	}
	milli := request.MilliValue()
	shares := max(milli*1024/1000, 2)
	value := map[string]int64{"cpushares": shares}
	if limit, ok := container.Resources.Limits[corev1.ResourceCPU]; ok {
		value["cpulimit"] = limit.MilliValue()
		delete(container.Resources.Limits, corev1.ResourceCPU)
	}
	text, _ := json.Marshal(value)
	delete(container.Resources.Requests, corev1.ResourceCPU)
	cores := corev1.ResourceName(kind + coresSuffix)
	if container.Resources.Limits == nil {
		container.Resources.Limits = corev1.ResourceList{}
	}
	container.Resources.Requests[cores] = *resource.NewQuantity(milli, resource.DecimalSI)
	container.Resources.Limits[cores] = *resource.NewQuantity(milli, resource.DecimalSI)
	pod.Annotations[resourcesPrefix+container.Name] = string(text)
}

func (h *handler) Handle(_ context.Context, req admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := h.decoder.Decode(req, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	kind := workloadType(pod)
	if kind == "" {
		return admission.Allowed("")
	}
	object, found, _ := h.namespaces.GetByKey(req.Namespace)
	if !found {
		return admission.Denied("unknown namespace")
	}
	types := object.(*corev1.Namespace).Annotations[allowed]
	ok := false
	for _, t := range strings.Split(types, ",") {
		ok = ok || t == kind
	}
	if !ok || isGuaranteed(pod) {
		return admission.Denied("not allowed")
	}
	for i := range pod.Spec.InitContainers {
		convert(pod, &pod.Spec.InitContainers[i], kind)
	}
	for i := range pod.Spec.Containers {
		convert(pod, &pod.Spec.Containers[i], kind)
	}
	changed, err := json.Marshal(pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, changed)
}

// load reads a JSON List of namespaces and nodes into the stores, typed, as a watch would.
func (h *handler) load(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	for _, item := range list.Items {
		var meta struct{ Kind string }
		if err := json.Unmarshal(item, &meta); err != nil {
			return err
		}
		switch meta.Kind {
		case "Namespace":
			object := &corev1.Namespace{}
			if err := json.Unmarshal(item, object); err != nil {
				return err
			}
			_ = h.namespaces.Add(object)
		case "Node":
			object := &corev1.Node{}
			if err := json.Unmarshal(item, object); err != nil {
				return err
			}
			_ = h.nodes.Add(object)
		}
	}
	return nil
}

func main() {
	port := flag.Int("port", 9443, "where to serve, on 127.0.0.1")
	certDir := flag.String("cert-dir", "", "directory with tls.crt and tls.key")
	state := flag.String("state", "", "JSON list of namespaces and nodes")
	flag.Parse()

	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme)
	h := &handler{
		decoder:    admission.NewDecoder(scheme),
		namespaces: cache.NewStore(cache.MetaNamespaceKeyFunc),
		nodes:      cache.NewStore(cache.MetaNamespaceKeyFunc),
	}
	if *state != "" {
		if err := h.load(*state); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: *port, CertDir: *certDir})
	server.Register("/mutate/pods", &webhook.Admission{Handler: h})
	if err := server.Start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
