// Package deploy_test checks the files with which operators run a cluster. It is a module of
// its own, so that the daemon's module needs neither Kubernetes nor Compose.
package deploy_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// kustomization has the fields that the kustomizations use.
type kustomization struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources"`
	Images     []struct {
		Name    string `json:"name"`
		NewName string `json:"newName"`
		NewTag  string `json:"newTag"`
	} `json:"images"`
	Labels []struct {
		Pairs map[string]string `json:"pairs"`
	} `json:"labels"`
}

// objects are the manifests of a folder.
type objects struct {
	kustomization kustomization
	config        *core.ConfigMap
	services      map[string]core.Service
	set           *apps.StatefulSet
	daemons       *apps.DaemonSet
	budget        *policy.PodDisruptionBudget
	autoscaler    *autoscaling.HorizontalPodAutoscaler
	network       *networking.NetworkPolicy
}

// load decodes every manifest of a folder against the types of Kubernetes. A field that the
// type does not have fails the test, so that a misspelt one does not leave a pod without its
// protection.
func load(t *testing.T, folder string) objects {
	t.Helper()
	o := objects{services: map[string]core.Service{}}
	decode(t, read(t, folder+"/kustomization.yaml"), &o.kustomization)
	files, err := filepath.Glob(folder + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		if name := filepath.Base(file); name != "kustomization.yaml" {
			found = append(found, name)
		}
	}
	slices.Sort(o.kustomization.Resources)
	if !slices.Equal(found, o.kustomization.Resources) {
		t.Errorf("%s has %q, and the kustomization lists %q", folder, found, o.kustomization.Resources)
	}
	for _, file := range found {
		for _, text := range strings.Split(read(t, folder+"/"+file), "\n---\n") {
			o.add(t, file, text)
		}
	}
	return o
}

func (o *objects) add(t *testing.T, file, text string) {
	t.Helper()
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name, Namespace string
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal([]byte(text), &head); err != nil {
		t.Fatal(err)
	}
	if head.Metadata.Namespace != "" {
		t.Errorf("%s: %s names a namespace", file, head.Kind)
	}
	switch head.APIVersion + " " + head.Kind {
	case "v1 ConfigMap":
		o.config = &core.ConfigMap{}
		decode(t, text, o.config)
	case "v1 Service":
		var s core.Service
		decode(t, text, &s)
		o.services[s.Name] = s
	case "apps/v1 StatefulSet":
		o.set = &apps.StatefulSet{}
		decode(t, text, o.set)
	case "apps/v1 DaemonSet":
		o.daemons = &apps.DaemonSet{}
		decode(t, text, o.daemons)
	case "policy/v1 PodDisruptionBudget":
		o.budget = &policy.PodDisruptionBudget{}
		decode(t, text, o.budget)
	case "autoscaling/v2 HorizontalPodAutoscaler":
		o.autoscaler = &autoscaling.HorizontalPodAutoscaler{}
		decode(t, text, o.autoscaler)
	case "networking.k8s.io/v1 NetworkPolicy":
		o.network = &networking.NetworkPolicy{}
		decode(t, text, o.network)
	default:
		t.Errorf("%s: no type for %s %s", file, head.APIVersion, head.Kind)
	}
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Objects refer to each other by names, labels and ports that exist.
func TestKubernetesRefers(t *testing.T) {
	o := load(t, "kubernetes")
	pod, labels := o.set.Spec.Template.Spec, o.set.Spec.Template.Labels
	container := pod.Containers[0]
	selectors := map[string]map[string]string{
		"set": o.set.Spec.Selector.MatchLabels, "budget": o.budget.Spec.Selector.MatchLabels, "network": o.network.Spec.PodSelector.MatchLabels,
		"spread": pod.TopologySpreadConstraints[0].LabelSelector.MatchLabels,
	}
	for name, s := range o.services {
		selectors["service "+name] = s.Spec.Selector
		for _, p := range s.Spec.Ports {
			if p.TargetPort.StrVal != container.Ports[0].Name || p.Port != container.Ports[0].ContainerPort {
				t.Errorf("service %s leads to port %s (%d); the container has %+v", name, p.TargetPort.StrVal, p.Port, container.Ports)
			}
		}
	}
	for name, s := range selectors {
		if len(s) == 0 {
			t.Errorf("%s selects everything", name)
		}
		for k, v := range s {
			if labels[k] != v {
				t.Errorf("%s selects %s=%s; the pods have %v", name, k, v, labels)
			}
		}
	}
	nodes, ok := o.services[o.set.Spec.ServiceName]
	if !ok || nodes.Spec.ClusterIP != core.ClusterIPNone || !nodes.Spec.PublishNotReadyAddresses {
		t.Errorf("the service of the set: %+v", nodes.Spec)
	}
	if to := o.autoscaler.Spec.ScaleTargetRef; to.Kind != "StatefulSet" || to.Name != o.set.Name || to.APIVersion != "apps/v1" {
		t.Errorf("the autoscaler scales %+v", to)
	}
	for _, from := range container.EnvFrom {
		if from.ConfigMapRef == nil || from.ConfigMapRef.Name != o.config.Name {
			t.Errorf("the environment is from %+v", from)
		}
	}
	if image := o.kustomization.Images[0]; image.Name != container.Image || !pinned(image.NewName+":"+image.NewTag) {
		t.Errorf("the container has the image %s, and the kustomization %+v", container.Image, image)
	}
	listen := regexp.MustCompile(`"--listen", "0\.0\.0\.0:(\d+)"`).FindStringSubmatch(read(t, "../Dockerfile"))
	if listen == nil || listen[1] != "8080" || container.Ports[0].ContainerPort != 8080 || container.Command != nil || container.Args != nil {
		t.Errorf("the image listens on %v, the container has %+v with the arguments %q %q", listen, container.Ports, container.Command, container.Args)
	}
	url := variable(t, container, "STASIS_NODE_URL").Value
	if url != "http://$(STASIS_NODE_ID)."+o.set.Spec.ServiceName+":8080" {
		t.Errorf("a node is reached at %s", url)
	}
}

// Probes ask routes that exist, and a database that is away ends no node.
func TestKubernetesProbes(t *testing.T) {
	c := load(t, "kubernetes").set.Spec.Template.Spec.Containers[0]
	for name, probe := range map[string]*core.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Port.StrVal != c.Ports[0].Name {
			t.Fatalf("the %s probe: %+v", name, probe)
		}
		if !strings.Contains(read(t, "../openapi.yaml"), "\n  "+probe.HTTPGet.Path+":\n") {
			t.Errorf("the %s probe asks %s, which the API does not have", name, probe.HTTPGet.Path)
		}
	}
	if path := c.LivenessProbe.HTTPGet.Path; path != "/healthz" {
		t.Errorf("the liveness probe asks %s, which also fails without the database", path)
	}
}

// A node has time to drain, and then to save what is left.
func TestKubernetesStops(t *testing.T) {
	pod := load(t, "kubernetes").set.Spec.Template.Spec
	c := pod.Containers[0]
	if c.Lifecycle == nil || c.Lifecycle.PreStop == nil || c.Lifecycle.PreStop.Exec == nil ||
		!strings.Contains(strings.Join(c.Lifecycle.PreStop.Exec.Command, " "), "stasis node drain --wait 5m") {
		t.Errorf("before its end a node does %+v", c.Lifecycle)
	}
	const drain = 300 // --wait
	if grace := seconds(t, variable(t, c, "STASIS_SHUTDOWN_GRACE").Value); *pod.TerminationGracePeriodSeconds < drain+grace {
		t.Errorf("a node has %d s for a drain of 300 s, and for the %d s of --shutdown-grace", *pod.TerminationGracePeriodSeconds, grace)
	}
}

// No container is privileged. Only that which copies the seccomp profile is root's.
func TestKubernetesConfined(t *testing.T) {
	nodes, copier := load(t, "kubernetes").set.Spec.Template.Spec, load(t, "kubernetes/seccomp").daemons.Spec.Template.Spec
	for name, pod := range map[string]core.PodSpec{"node": nodes, "copier": copier} {
		if pod.HostNetwork || pod.HostPID || pod.HostIPC || pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
			t.Errorf("%s: the pod shares too much: %+v", name, pod)
		}
		if pod.SecurityContext == nil || pod.SecurityContext.SeccompProfile == nil || pod.SecurityContext.SeccompProfile.Type == core.SeccompProfileTypeUnconfined {
			t.Errorf("%s: the pod has no seccomp profile", name)
		}
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			s := c.SecurityContext
			if s == nil || s.Privileged != nil && *s.Privileged || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
				s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || s.Capabilities.Add != nil {
				t.Errorf("%s %s is not confined: %+v", name, c.Name, s)
			}
			if c.Resources.Requests.Memory().IsZero() || c.Resources.Requests.Memory().Cmp(*c.Resources.Limits.Memory()) != 0 {
				t.Errorf("%s %s: memory %v", name, c.Name, c.Resources)
			}
			if name == "copier" && !pinned(c.Image) {
				t.Errorf("the version of the image %s is not pinned", c.Image)
			}
		}
	}
	if s := nodes.SecurityContext; s.RunAsNonRoot == nil || !*s.RunAsNonRoot || *s.RunAsUser != 10001 || *s.FSGroup != 10001 {
		t.Errorf("a node runs as %+v; the image's user is 10001", s)
	}
	for _, v := range nodes.Volumes {
		if v.HostPath != nil {
			t.Errorf("a node has the folder %s of its machine", v.HostPath.Path)
		}
	}
}

// The seccomp profile is that of docker/, and a node asks for the file that the copier writes.
func TestKubernetesSeccomp(t *testing.T) {
	o := load(t, "kubernetes/seccomp")
	var profile string
	for _, text := range o.config.Data {
		profile = text
	}
	if len(o.config.Data) != 1 || strings.TrimSpace(profile) != strings.TrimSpace(read(t, "../docker/seccomp.json")) {
		t.Error("the profile differs from docker/seccomp.json")
	}
	pod := o.daemons.Spec.Template.Spec
	var host string
	for _, v := range pod.Volumes {
		if v.HostPath != nil {
			host = v.HostPath.Path
		}
		if v.ConfigMap != nil && v.ConfigMap.Name != o.config.Name {
			t.Errorf("the volume %s is of %s", v.Name, v.ConfigMap.Name)
		}
	}
	asked := *load(t, "kubernetes").set.Spec.Template.Spec.SecurityContext.SeccompProfile.LocalhostProfile
	command := pod.InitContainers[0].Command
	if got := filepath.Join(host, filepath.Base(command[len(command)-1])); got != "/var/lib/kubelet/seccomp/"+asked {
		t.Errorf("the copier writes %s, and nodes ask for %s", got, asked)
	}
}

// Secrets come from files of one Secret, and each of its files is used.
func TestKubernetesSecrets(t *testing.T) {
	o := load(t, "kubernetes")
	pod := o.set.Spec.Template.Spec
	c := pod.Containers[0]
	used := map[string]bool{"api-key": true} // the daemon reads it in its data directory
	given := read(t, "kubernetes/config.yaml")
	for _, e := range c.Env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			t.Errorf("%s has a secret in the environment", e.Name)
		}
		given += "\n" + e.Value
	}
	for _, file := range regexp.MustCompile(`/run/secrets/stasis/([a-z0-9-]+)`).FindAllStringSubmatch(given, -1) {
		used[file[1]] = true
	}
	for _, v := range pod.Volumes {
		if v.Secret == nil {
			continue
		}
		for _, item := range v.Secret.Items {
			if !used[item.Key] {
				t.Errorf("nothing uses the secret %s", item.Key)
			}
			delete(used, item.Key)
		}
	}
	if len(used) > 0 {
		t.Errorf("the Secret does not have %v", used)
	}
}

// The autoscaler uses metrics that the daemon has.
func TestKubernetesMetrics(t *testing.T) {
	for _, m := range load(t, "kubernetes").autoscaler.Spec.Metrics {
		if m.Pods == nil || !strings.Contains(read(t, "../docs/operations.md"), "| `"+m.Pods.Metric.Name+"` |") {
			t.Errorf("docs/operations.md does not have the metric of %+v", m)
		}
		if m.Pods != nil && !strings.Contains(read(t, "../docs/cluster.md"), m.Pods.Metric.Name) {
			t.Errorf("the adapter of docs/cluster.md does not give %s", m.Pods.Metric.Name)
		}
	}
}

// The nodes trust no network in which pods can be.
func TestKubernetesTrustsNoPods(t *testing.T) {
	o := load(t, "kubernetes")
	trusted, err := netip.ParsePrefix(o.config.Data["STASIS_TRUSTED_PROXY"])
	if err != nil {
		t.Fatal(err)
	}
	egress := o.network.Spec.Egress
	for _, of := range egress[len(egress)-1].To[0].IPBlock.Except { // what is private
		if trusted.Overlaps(netip.MustParsePrefix(of)) {
			t.Errorf("the nodes trust %s, which is in %s", trusted, of)
		}
	}
}

// Every variable is a flag of serve.
func TestKubernetesFlags(t *testing.T) {
	o := load(t, "kubernetes")
	names := []string{}
	for name := range o.config.Data {
		names = append(names, name)
	}
	for _, e := range o.set.Spec.Template.Spec.Containers[0].Env {
		names = append(names, e.Name)
	}
	checkFlags(t, names)
}

// variable returns a variable of a container.
func variable(t *testing.T, c core.Container, name string) core.EnvVar {
	t.Helper()
	i := slices.IndexFunc(c.Env, func(e core.EnvVar) bool { return e.Name == name })
	if i < 0 {
		t.Fatalf("the container has no %s", name)
	}
	return c.Env[i]
}
