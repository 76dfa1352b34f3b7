package docs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/stasisd/stasis"

// mayImport says which packages of this module a package may import directly, by path
// patterns below the module. The first rule that matches a package applies. A package that
// no rule matches fails the test: every new package needs a rule.
var mayImport = []struct{ pkg, imports string }{
	{".", ""}, // the OpenAPI document, embedded from the root
	{"fault", ""},
	{"egress", ""},       // addresses that may be connected to
	{"confine", "fault"}, // processes without rights
	{"budget", ""},       // memory for slow clients, of CDP and of HTTP
	{"freeport", ""},     // ports for the servers of tests
	{"wire", ""},         // the JSON that callers get
	{"state", "fault state/report"},
	{"state/report", ""},
	{"state/spelling", ""},
	{"state/portable", "fault state state/spelling"},
	{"state/*", "fault state"},

	// The three layers below session import state and fault, never each other. Within a
	// layer, the root imports its adapters or they import the root. In browser, imports
	// between adapters go down too: restore and verify use apply, baseline and capture;
	// those use hiddentab and profile. Only pool imports the root.
	{"browser", "fault state state/report budget egress browser/cgroup browser/fair browser/launch browser/mux browser/hiddentab browser/capture browser/apply browser/baseline browser/restore browser/verify browser/logincheck browser/pageevent browser/targetinit browser/passkey browser/profile browser/profile/* browser/relay browser/resolver browser/view"},
	{"browser/hiddentab", "state"},
	{"browser/capture", "fault state browser/hiddentab"},
	{"browser/apply", "fault state state/report browser/hiddentab browser/capture"},
	{"browser/baseline", "state state/report browser/profile browser/profile/*"},
	{"browser/verify", "state state/report browser/capture browser/baseline"},
	{"browser/restore", "fault state state/report browser/mux browser/capture browser/apply browser/baseline browser/targetinit"},
	{"browser/logincheck", "browser/mux browser/targetinit"},
	{"browser/pageevent", "egress browser/mux"},
	{"browser/view", "fault budget browser/mux"},
	{"browser/targetinit", "fault browser/mux"},
	{"browser/passkey", "fault state browser/capture browser/mux browser/targetinit"},
	{"browser/profile", "fault state state/report browser/profile/* browser/profile/internal/*"},
	{"browser/profile/inspect", "fault state browser/profile/localstorage browser/profile/sessionstorage browser/profile/internal/*"},
	{"browser/profile/profiletest", "state browser/profile/localstorage browser/profile/sessionstorage browser/profile/internal/*"}, // makes profiles for tests
	{"browser/profile/gate", "fault state state/report browser/profile/internal/* browser/profile"},                                 // which of its files an environment cannot replace
	{"browser/profile/*", "fault state state/report browser/profile/internal/*"},
	{"browser/profile/internal/*", ""},
	{"browser/pool", "fault state browser"},
	{"browser/mux", "fault state budget"},
	{"browser/launch", "fault state state/report egress browser/downloads browser/cgroup browser/netns browser/firewall browser/resolver"}, // its tests use the last two
	{"browser/netns", "fault egress browser/firewall browser/resolver"},
	{"browser/relay", "fault egress"},
	{"browser/resolver", "fault egress"},
	{"browser/firewall", "fault egress"},
	{"browser/cgroup", "fault"}, // the kernel's files; it does not know Chrome
	{"browser/fair", ""},        // arithmetic; it does not know what a share is
	{"browser/*", "fault state state/report"},
	{"backup", "fault"}, // files and their hashes; it does not know what they mean
	{"snapshot", "fault state wire"},
	{"snapshot/storetest", "fault state snapshot snapshot/faultstore"}, // the suite also makes a store fail
	{"snapshot/s3store/s3test", "freeport snapshot/s3store"},           // the S3 server of the tests
	{"snapshot/*", "fault state snapshot"},
	{"profiles", "fault state"},
	{"profiles/sqldbtest", "profiles/sqldb"}, // an empty catalogue for tests
	{"profiles/postgrestest", "freeport"},    // a PostgreSQL server for tests
	{"profiles/sqldb/postgres", ""},          // a driver; it does not know what is stored
	{"profiles/sqldb", "fault profiles profiles/sqldb/postgres"},
	{"profiles/*", "fault state profiles"},

	// A session does not know Chrome's files: it uses browser, or one of its
	// interfaces.
	{"session", "fault state state/* browser browser/extension browser/mux browser/pool browser/view snapshot profiles session/* session/login/renewal session/library/audit session/restore/archives"},
	{"session/events", "fault profiles session/access wire"},           // it does not know what its events mean
	{"session/events/webhook", "fault egress profiles session/access"}, // nor does the sender of webhooks
	{"session/quota", "fault"},
	{"session/access", "fault profiles session/quota"},
	{"session/capacity", "fault browser browser/pool profiles session/quota"}, // it does not know what the Chromes contain that it keeps
	{"session/agent", "fault profiles snapshot session/access session/events session/restore"},
	{"session/browsers", "state browser browser/mux browser/view"},
	{"session/settings", "fault egress browser profiles session/access session/library session/quota"},
	{"session/login", "fault browser profiles session/access session/browsers session/events session/restore session/settings"},
	{"session/save", "fault state state/report browser browser/extension browser/mux snapshot profiles session/agent session/browsers session/events session/library session/login session/restore session/settings"},
	{"session/undo", "browser browser/launch session/browsers session/save"},
	{"session/login/renewal", "fault state state/report browser snapshot profiles session/browsers session/library session/login session/restore session/save session/settings"},
	{"session/importer", "fault state state/report browser snapshot profiles confine session/access session/browsers session/library session/login session/save session/settings"},
	{"session/rescue", "fault state browser snapshot profiles session/browsers session/events session/library session/save"},
	{"session/answer", "wire profiles session/access session/autosave session/restore session/save"}, // values and their JSON
	{"session/drive", "browser session/access"},
	{"session/files", "fault browser browser/downloads session/access"},
	{"session/inspect", "session/request fault profiles session/access session/agent session/answer session/restore"},
	{"session/autosave", "fault browser state"},
	{"session/pictures", "session/events"},
	{"session/request", "fault egress state browser profiles session/access session/autosave session/restore session/save session/settings"},
	{"session/queue", ""},
	// Which node gets a session, and who waits for a place.
	{"session/placement", "fault state profiles session/access session/quota"},
	{"session/cluster", "fault profiles session/placement"}, // leases and takeovers; it knows sessions by an interface
	{"session/records", "fault profiles session/events"},
	{"session/auditlog", "fault wire profiles session/access"},
	{"session/run", "fault browser profiles session/events session/library session/queue session/restore session/save"},
	{"session/claims", "fault snapshot profiles session/access session/registry session/restore"},
	{"session/registry", "fault session/login/renewal session/restore"},
	{"session/restore", "fault state state/report browser browser/extension snapshot profiles session/access session/browsers"},
	{"session/restore/archives", "fault state snapshot profiles session/agent session/library session/restore"},
	{"session/library", "fault state state/* snapshot profiles browser/extension session/access"}, // it does not know live sessions
	{"session/library/audit", "fault snapshot profiles session/library"},
	{"session/*", "fault state state/* snapshot profiles session/access"},
	{"session/*/*", "fault state profiles session/*"},
	{"api", ". fault budget egress wire state state/spelling browser browser/extension snapshot session session/access session/agent session/answer session/auditlog session/autosave session/drive session/events session/events/webhook session/files session/importer session/inspect session/library session/login session/request session/quota session/restore session/save session/settings session/placement api/console api/forward api/live"}, // session tells it what can be recorded
	{"api/apitest", "."},
	{"api/forward", "fault session/placement"}, // how calls reach other nodes; it does not know what they are about
	{"api/console", "client"},                  // it calls the API as a client does
	{"api/live", ""},
	{"api/metrics", "session session/login session/save"},
	{"client", ""}, // for programs of other people: it calls the API, and imports nothing of the daemon
	{"examples/go", "client"},
	{"mcpserver", "client"},
	{"cmd/*", ". client mcpserver fault backup budget confine egress state browser browser/* snapshot snapshot/* profiles profiles/* session session/* session/*/* api api/* cmd/stasis/demosite"},

	{"cmd/stasis/demosite", ""}, // the site of stasis demo

	// What the tests are built on; none of it is linked into the binary.
	{"e2e/apps/weblog", ""},
	{"e2e/apps/probe", "e2e/apps/weblog cmd/stasis/demosite"},
	{"e2e/apps/blank", ""},
	{"e2e/apps/relyingparty", ""},
	{"e2e/apps/webapp", "freeport e2e/apps/weblog"},
	{"e2e/apps", "e2e/apps/*"},
	{"e2e/daemon", "api/apitest"},
	{"e2e/rig", ""},
	{"e2e/bench", "freeport e2e/apps/probe cmd/stasis/demosite e2e/rig profiles/postgrestest snapshot/s3store/s3test"},
	{"e2e/typing", "e2e/rig"},
	// All layers, as cmd connects them, with simulated browsers.
	{"e2e/scale", "e2e/rig fault state api api/forward api/metrics browser browser/* snapshot snapshot/* profiles profiles/* session session/* session/events/webhook"},
	{"e2e/nodes", "e2e/rig profiles/postgrestest snapshot/s3store/s3test"},
	{"e2e/cluster", "e2e/nodes e2e/rig cmd/stasis/demosite"},
	{"e2e/pictures", "e2e/rig"},
	{"e2e/guards", ""},
	{"e2e/format", ""},
	{"e2e/torture", ""},
	{"e2e/fidelity", "freeport e2e/apps/blank e2e/apps/webapp e2e/rig"},
	{"e2e", "*"},
	{"docs", ""},
}

// testsMayImport says what the tests of a package may import in addition: test doubles of
// lower layers, and test suites. The package itself is always allowed.
var testsMayImport = []struct{ pkg, imports string }{
	{"browser", "freeport state/*"},
	{"browser/firewall", "freeport"},
	{"snapshot", "snapshot/*"},
	{"snapshot/*", "snapshot/* snapshot/s3store/s3test"},
	{"profiles/*", "profiles/*"},
	{"api", "api/* profiles profiles/profilestest"},
	{"session", "session/events/webhook snapshot/* profiles/* browser/launch browser/profile browser/profile/*"},
	{"session/settings", "fault browser profiles session/access session/library"},
	{"session/login", "fault browser profiles session/access session/browsers session/events session/restore session/settings"},
	{"session/save", "fault state state/report browser browser/extension browser/mux snapshot profiles session/agent session/browsers session/events session/library session/login session/restore session/settings"},
	{"session/login/renewal", "fault state state/report browser snapshot profiles session/browsers session/library session/login session/restore session/save session/settings"},
	{"session/importer", "fault state state/report browser browser/profile snapshot profiles confine session/access session/browsers session/library session/login session/save session/settings"},
	{"session/rescue", "fault state browser snapshot profiles session/browsers session/events session/library session/save"},
	{"session/restore", "browser/launch egress"},
	{"session/undo", "profiles"},
	{"session/request", "snapshot snapshot/memstore"}, // records sealed as the daemon seals them
	{"session/*", "snapshot/* profiles/*"},
	{"session/library/*", "snapshot/* profiles/*"},
	// These tests examine everything that the binary did.
	{"e2e", "* */* */*/*"},
	{"e2e/*", "* */* */*/*"},
}

// mayUse lists packages that only few packages wrap, with those that may import them.
// Packages below them are included.
var mayUse = map[string][]string{
	// Only browser knows what Chrome has on disk; cmd passes it to session as an interface.
	module + "/browser/profile": {"browser", "browser/*", "browser/profile/*", "browser/profile/*/*", "cmd/*", "e2e", "e2e/scale"},
	"github.com/labstack/echo":  {"api", "api/*"},
	"github.com/prometheus":     {"api/metrics"},
	"github.com/mholt/archiver": {"snapshot"},
	"github.com/minio/minio-go": {"snapshot/s3store", "snapshot/s3store/*"},
}

// Imports go down only.
func TestImportsGoDown(t *testing.T) {
	packages := listPackages(t)
	if len(packages) < 10 {
		t.Fatalf("only %d packages found: is the test looking at the right module?", len(packages))
	}
	for _, p := range packages {
		from := pathInModule(p.ImportPath)
		allowed, known := allowedFor(from)
		if !known {
			t.Errorf("%s has no place in the architecture: add it to mayImport", from)
			continue
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			if inModule(imported) && !matches(allowed, pathInModule(imported)) && imported != p.ImportPath && !matches(allowedForTests(from), pathInModule(imported)) {
				t.Errorf("the tests of %s must not import %s", from, pathInModule(imported))
			}
		}
		for _, imported := range p.Imports {
			if inModule(imported) && !matches(allowed, pathInModule(imported)) {
				t.Errorf("%s must not import %s", from, pathInModule(imported))
			}
			for prefix, users := range mayUse {
				if (imported == prefix || strings.HasPrefix(imported, prefix+"/")) && !matches(users, from) {
					t.Errorf("%s must not import %s", from, imported)
				}
			}
		}
	}
}

// Only one file imports the archiver, because its errors need care.
func TestOneFileImportsTheArchiver(t *testing.T) {
	out, err := exec.Command("git", "-C", "..", "grep", "--untracked", "-lF", `"github.com/mholt/archiver`, "--", "*.go", ":!docs").Output()
	if err != nil {
		t.Fatalf("git grep: %v", err)
	}
	if files := strings.Fields(string(out)); len(files) != 1 {
		t.Errorf("files that import the archiver: %q", files)
	}
}

type goPackage struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func inModule(imported string) bool {
	return imported == module || strings.HasPrefix(imported, module+"/")
}

// listPackages includes packages that do not build (-e): other tests report those.
func listPackages(t *testing.T) []goPackage {
	t.Helper()
	packages, err := goList()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return packages
}

// goList runs once for all tests, because it takes as long as they do.
var goList = sync.OnceValues(func() (packages []goPackage, err error) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
})

// pathInModule returns the path of a package below the module, "." for its root.
func pathInModule(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

func allowedForTests(pkg string) []string {
	for _, rule := range testsMayImport {
		if matches([]string{rule.pkg}, pkg) {
			return strings.Fields(rule.imports)
		}
	}
	return nil
}

func allowedFor(pkg string) ([]string, bool) {
	for _, rule := range mayImport {
		if matches([]string{rule.pkg}, pkg) {
			return strings.Fields(rule.imports), true
		}
	}
	return nil, false
}

// matches reports whether a pattern matches; a star stands for one path element.
func matches(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, pkg)
		return err == nil && ok
	})
}
