package docs_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// exposure is the most that systemd-analyze security may give the unit, in tenths. Versions of
// systemd count a little differently.
const exposure = "20"

// systemd accepts every line of the unit and of the drop-in of docs/operations.md, and the unit
// stays as closed as the page says.
func TestUnit(t *testing.T) {
	unit := read(t, "../packaging/stasis.service")
	dir := t.TempDir()
	path := filepath.Join(dir, "stasis.service")
	// verify wants a binary that exists.
	write(t, path, strings.ReplaceAll(unit, "/usr/bin/stasis ", "/bin/true "))
	systemdAnalyze(t, "verify", path)
	systemdAnalyze(t, "security", "--offline=true", "--threshold="+exposure, path)

	_, dropIn, found := strings.Cut(read(t, "operations.md"), "```ini\n[Service]\nUser=\n")
	dropIn, _, ended := strings.Cut(dropIn, "```")
	if !found || !ended {
		t.Fatal("operations.md has no drop-in for a daemon of root")
	}
	if err := os.Mkdir(path+".d", 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path+".d", "root.conf"), "[Service]\nUser=\n"+dropIn)
	systemdAnalyze(t, "verify", path)
	for _, line := range strings.Split(strings.TrimSpace(dropIn), "\n") {
		option, _, _ := strings.Cut(line, "=")
		if !strings.Contains(unit, "\n"+option+"=") {
			t.Errorf("the drop-in changes %s, which the unit does not set", option)
		}
	}
}

// systemdAnalyze fails the test if the command fails, or complains: verify also succeeds if it
// ignores a line.
func systemdAnalyze(t *testing.T, verb string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "systemd-analyze", append([]string{verb, "--no-pager"}, args...)...) //nolint:gosec // the project's own unit
	var said bytes.Buffer
	cmd.Stderr = &said
	if out, err := cmd.Output(); err != nil || verb == "verify" && said.Len() > 0 {
		t.Errorf("systemd-analyze %s: %v\n%s%s", verb, err, said.String(), out)
	}
}

// compose is what docker/compose.yaml may have. Other fields fail the test, so that a misspelt
// one does not leave a container without its protection.
type compose struct {
	Name     string
	Services map[string]struct {
		Image, Build    string
		Ports, Volumes  []string
		Secrets, Tmpfs  []string
		Environment     map[string]string
		ReadOnly        bool     `yaml:"read_only"`
		ShmSize         string   `yaml:"shm_size"`
		MemLimit        string   `yaml:"mem_limit"`
		CapDrop         []string `yaml:"cap_drop"`
		SecurityOpt     []string `yaml:"security_opt"`
		Restart         string
		StopGracePeriod string `yaml:"stop_grace_period"`
	}
	Secrets map[string]struct{ File string }
	Volumes map[string]*struct{}
}

// The Compose file fits the daemon: its options, its seccomp profile, its time to stop. The
// keys do not get into the image or the repository.
func TestCompose(t *testing.T) {
	decoder := yaml.NewDecoder(strings.NewReader(read(t, "../docker/compose.yaml")))
	decoder.KnownFields(true)
	var file compose
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	s := file.Services["stasis"]
	if !s.ReadOnly || strings.Join(s.CapDrop, " ") != "ALL" || strings.Join(s.SecurityOpt, " ") != "no-new-privileges:true seccomp=seccomp.json" {
		t.Errorf("the container is not confined: %+v", s)
	}
	if _, err := os.Stat("../docker/seccomp.json"); err != nil {
		t.Error(err)
	}
	shutdown := regexp.MustCompile("`--shutdown-grace` \\((\\d+) s\\)").FindStringSubmatch(read(t, "operations.md"))
	if shutdown == nil {
		t.Fatal("operations.md does not name --shutdown-grace")
	}
	seconds, _ := strconv.Atoi(shutdown[1])
	if grace, err := time.ParseDuration(s.StopGracePeriod); err != nil || grace <= time.Duration(seconds)*time.Second {
		t.Errorf("stop_grace_period %s: %v, and the daemon takes %d s", s.StopGracePeriod, err, seconds)
	}
	for name := range s.Environment {
		flag := "`--" + strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "STASIS_")), "_", "-") + "`"
		if !strings.Contains(read(t, "configuration.md"), flag) {
			t.Errorf("%s: serve has no flag %s", name, flag)
		}
	}
	for _, name := range s.Secrets {
		if filepath.Dir(file.Secrets[name].File) != "secrets" {
			t.Errorf("the secret %s is in %q", name, file.Secrets[name].File)
		}
	}
	for _, list := range []string{"../.gitignore", "../.dockerignore"} {
		if !strings.Contains(read(t, list), "docker/secrets\n") {
			t.Errorf("%s does not list docker/secrets", list)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
