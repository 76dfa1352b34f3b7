package deploy_test

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// checkFlags checks that each variable of a daemon is a flag that docs/configuration.md
// lists. Another test compares that page with the binary.
func checkFlags(t *testing.T, variables []string) {
	t.Helper()
	page := read(t, "../docs/configuration.md")
	has := func(flag string) bool { return regexp.MustCompile("(?m)^\\|.*`--" + flag + "`").MatchString(page) }
	for _, name := range variables {
		flag := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "STASIS_")), "_", "-")
		if !strings.HasPrefix(name, "STASIS_") || !has(flag) {
			t.Errorf("%s: serve has no flag --%s", name, flag)
		}
	}
}

// pinned reports whether an image has a version.
func pinned(image string) bool {
	name := image[strings.LastIndexByte(image, '/')+1:]
	_, version, found := strings.Cut(name, ":")
	return found && regexp.MustCompile(`^v?\d+\.\d+`).MatchString(version)
}

func seconds(t *testing.T, text string) int64 {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return int64(d.Seconds())
}

// project loads the Compose file as Compose does. It refuses fields that Compose does not
// have.
func project(t *testing.T) *types.Project {
	t.Helper()
	p, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{WorkingDir: ".", ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml"}}, Environment: types.Mapping{}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Only Caddy has ports. Each container is confined, healthy when it says so, and of a known
// version.
func TestComposeServices(t *testing.T) {
	p := project(t)
	if len(p.Services) != 5 {
		t.Fatalf("the services are %v", p.ServiceNames())
	}
	for name, s := range p.Services {
		if (len(s.Ports) > 0) != (name == "caddy") {
			t.Errorf("%s has the ports %v", name, s.Ports)
		}
		if s.Privileged || s.NetworkMode == "host" || s.Pid != "" || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") || s.MemLimit == 0 {
			t.Errorf("%s is not confined: %+v", name, s)
		}
		for _, c := range s.CapAdd {
			if !slices.Contains([]string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID", "NET_BIND_SERVICE"}, c) {
				t.Errorf("%s may do %s", name, c)
			}
		}
		if s.HealthCheck == nil || len(s.HealthCheck.Test) < 2 {
			t.Errorf("%s has no health check", name)
		}
		if !pinned(s.Image) {
			t.Errorf("%s: the version of the image %s is not pinned", name, s.Image)
		}
		if s.Restart != "unless-stopped" {
			t.Errorf("%s: restart is %q", name, s.Restart)
		}
	}
}

// The nodes differ only in their name, their address and their volume, and use the image as
// docker/compose.yaml does.
func TestComposeNodes(t *testing.T) {
	p := project(t)
	first := p.Services["node1"]
	for _, name := range []string{"node1", "node2"} {
		s := p.Services[name]
		var names []string
		for variable, value := range s.Environment {
			names = append(names, variable)
			own := variable == "STASIS_NODE_ID" || variable == "STASIS_NODE_URL"
			if other := first.Environment[variable]; !own && (other == nil || *value != *other) {
				t.Errorf("%s: %s is %s", name, variable, *value)
			}
		}
		checkFlags(t, names)
		if id, url := *s.Environment["STASIS_NODE_ID"], *s.Environment["STASIS_NODE_URL"]; id != name || url != "http://"+name+":8080" {
			t.Errorf("%s is %s at %s", name, id, url)
		}
		if !s.ReadOnly || s.User != "" || !slices.ContainsFunc(s.SecurityOpt, func(o string) bool { return strings.HasSuffix(o, "docker/seccomp.json") }) || s.ShmSize < 1<<30 {
			t.Errorf("%s is not as docker/compose.yaml: %+v", name, s)
		}
		if grace := seconds(t, *s.Environment["STASIS_SHUTDOWN_GRACE"]); s.StopGracePeriod == nil || int64(time.Duration(*s.StopGracePeriod).Seconds()) <= grace {
			t.Errorf("%s has %v to stop, and needs %d s", name, s.StopGracePeriod, grace)
		}
		if len(s.Volumes) != 1 || s.Volumes[0].Source != name || s.Volumes[0].Target != "/data" {
			t.Errorf("%s has the volumes %+v", name, s.Volumes)
		}
		if !strings.Contains(read(t, "Caddyfile"), name+":8080") {
			t.Errorf("Caddy does not know %s", name)
		}
	}
}

// The nodes trust the headers of Caddy, whose address nobody else gets. They do not trust each
// other's addresses, from which the browsers of sessions connect.
func TestComposeTrustsOnlyCaddy(t *testing.T) {
	p := project(t)
	trusted, err := netip.ParsePrefix(*p.Services["node1"].Environment["STASIS_TRUSTED_PROXY"])
	if err != nil {
		t.Fatal(err)
	}
	pool := p.Networks["cluster"].Ipam.Config[0]
	subnet, others := netip.MustParsePrefix(pool.Subnet), netip.MustParsePrefix(pool.IPRange)
	for name, s := range p.Services {
		fixed := ""
		if own := s.Networks["cluster"]; own != nil {
			fixed = own.Ipv4Address
		}
		switch {
		case len(s.Networks) != 1:
			t.Errorf("%s is in the networks %v", name, s.Networks)
		case name != "caddy" && fixed != "":
			t.Errorf("%s has the address %s", name, fixed)
		case name == "caddy" && (trusted != netip.PrefixFrom(netip.MustParseAddr(fixed), 32) || !subnet.Contains(trusted.Addr())):
			t.Errorf("the nodes trust %s, and Caddy is at %s in %s", trusted, fixed, subnet)
		}
	}
	if trusted.Overlaps(others) || !subnet.Overlaps(others) || trusted.Contains(netip.MustParseAddr(pool.Gateway)) {
		t.Errorf("the nodes trust %s, in which others are: %+v", trusted, pool)
	}
}

// Secrets are files in a folder that neither the repository nor the image has. No command and
// no variable has one, and each file is given to whom names it.
func TestComposeSecrets(t *testing.T) {
	p := project(t)
	for name, s := range p.Secrets {
		if !strings.HasSuffix(s.File, "secrets/"+name) {
			t.Errorf("the secret %s is in %s", name, s.File)
		}
	}
	for name, s := range p.Services {
		mentioned := strings.Join(slices.Concat(s.Command, s.Entrypoint), "\n")
		for variable, value := range s.Environment {
			mentioned += "\n" + *value
			if regexp.MustCompile(`(PASSWORD|SECRET|KEY)$`).MatchString(variable) && variable != "ROOT_ACCESS_KEY" && variable != "STASIS_S3_ACCESS_KEY" {
				t.Errorf("%s: %s has a secret", name, variable)
			}
		}
		given := map[string]bool{}
		for _, secret := range s.Secrets {
			given[secret.Source] = true
			if secret.Target != "/data/api-key" && !strings.Contains(mentioned, "/run/secrets/"+secret.Source) {
				t.Errorf("%s does not use the secret %s", name, secret.Source)
			}
		}
		for _, m := range regexp.MustCompile(`/run/secrets/([a-z0-9-]+)`).FindAllStringSubmatch(mentioned, -1) {
			if !given[m[1]] {
				t.Errorf("%s uses the secret %s, which it is not given", name, m[1])
			}
		}
	}
	for _, list := range []string{"../.gitignore", "../.dockerignore"} {
		if !strings.Contains(read(t, list), "deploy/secrets\n") {
			t.Errorf("%s does not list deploy/secrets", list)
		}
	}
}
