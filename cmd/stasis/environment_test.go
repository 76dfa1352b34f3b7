//go:build linux

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// All settings of the daemon can be set in the environment. Of the other verbs, only the
// flags that say where data is and which key to use can. Any other variable would change
// what a verb does without a flag on its command line. doctor and config read the daemon's own
// variables, because they check what the daemon would use.
func TestEnvironment(t *testing.T) {
	places := strings.Fields(`STASIS_API_KEY STASIS_ARCHIVE_KEY_FILE STASIS_CHROME STASIS_CONFIG STASIS_DATABASE STASIS_DATA_DIR STASIS_IDENTITY_COMMAND STASIS_IDENTITY_FILE
		STASIS_RECIPIENT STASIS_S3_ACCESS_KEY STASIS_S3_SECRET_KEY_FILE STASIS_STORE STASIS_URL`)
	found := map[string]bool{}
	var look func(n *kong.Node)
	look = func(n *kong.Node) {
		for _, flag := range n.Flags {
			if n.Name == "serve" {
				if len(flag.Envs) == 0 {
					t.Errorf("serve --%s is not in the environment", flag.Name)
				}
				continue
			}
			for _, name := range flag.Envs {
				found[name] = true
				if !slices.Contains(places, name) && n.Name != "doctor" && n.Name != "config" {
					t.Errorf("%s --%s is %s in the environment", n.FullPath(), flag.Name, name)
				}
			}
		}
		for _, child := range n.Children {
			look(child)
		}
	}
	look(newParser(&cli{}).Model.Node)
	for _, name := range places {
		if !found[name] {
			t.Errorf("no verb reads %s", name)
		}
	}
}
