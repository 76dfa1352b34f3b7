package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/state"
)

// filled creates a closed environment with data of every kind, and its document as a save
// would.
func (r *rig) filled(url string) (*Dir, state.Document) {
	r.t.Helper()
	b := r.fresh()
	r.open(b, url+"/")
	r.eval(b, url+"/", fill)
	r.eval(b, url+"/", `sessionStorage.setItem("step", "one"); 1`)
	doc, err := b.Capture(within(r.t))
	if err != nil {
		r.t.Fatal(err)
	}
	if doc.Datadir, err = b.Close(within(r.t)); err != nil || doc.Datadir != state.DatadirClean {
		r.t.Fatalf("%s, %v", doc.Datadir, err)
	}
	p := r.inventory(b.dir)
	doc.Inventory, doc.Cookies, doc.Local = p.Inventory, p.Cookies, p.LocalStorage.Areas
	doc.FromDisk = []string{state.ComponentCookies, state.ComponentLocalStorage}
	return b.dir, doc
}

// copyOf copies a closed environment into a separate run directory.
func (r *rig) copyOf(d *Dir) *Dir {
	r.t.Helper()
	to := r.dir()
	if err := os.CopyFS(filepath.Join(to.Profile(), profile.Default), os.DirFS(profile.Path(d.Profile()))); err != nil {
		r.t.Fatal(err)
	}
	return to
}

// harm changes every file of the profile that matches a pattern.
func (r *rig) harm(d *Dir, pattern string, do func([]byte) []byte) {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(d.Profile(), profile.Folder(d.Profile()), pattern))
	if err != nil || len(files) == 0 {
		r.t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, do(raw), 0o600)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

func cut(b []byte) []byte { return b[:len(b)/2] }

func flip(b []byte) []byte {
	for i := len(b) / 3; i < len(b)/3+40 && i < len(b); i++ {
		b[i] ^= 0x5a
	}
	return b
}

// reported formats the restored counts of the report as countAll does.
func reported(report []state.Component, v state.Verification, origin, domain string) string {
	var inv state.Inventory
	for _, c := range report {
		for _, better := range v.Components {
			if better.Name == c.Name && better.Origin == c.Origin {
				c = better
			}
		}
		if strings.Contains("cache_storage cookies file_system indexed_db indexed_db_records local_storage service_workers storage_buckets", c.Name) {
			inv = append(inv, state.Holding{Component: c.Name, Origin: c.Origin, Items: c.Restored})
		}
	}
	inv.Sort()
	return formatCounts(inv, origin, domain)
}

// However a profile is damaged, Chrome starts, and everything in the document is
// restored. The report's counts equal those of the site itself. The long form also restores
// the undamaged profile, whose counts TestInventoryCountsAsTheSiteDoes checks.
func TestReportOfADamagedProfile(t *testing.T) {
	r := newRig(t)
	url := newKinds(t)
	dir, doc := r.filled(url)
	tabs, err := inspect.ReadTabs(within(t), profile.Path(dir.Profile()))
	if err != nil || len(tabs.Items) != 1 || tabs.Items[url+"/"] != 1 || !tabs.Names(url+"/") || tabs.Names(url+"/never") {
		t.Errorf("the profile's tabs: %v, %v", tabs.Items, err)
	}
	for name, test := range map[string]struct {
		harm func(*Dir)
		want string // what the site finds and the report says
		lost string // components that were not restored
	}{
		"whole": {func(*Dir) {},
			"cache_storage=7 cookies=2 file_system=2 indexed_db=3 indexed_db_records=81 local_storage=2 service_workers=1 storage_buckets=1", ""},
		"cut": {func(d *Dir) {
			for _, file := range []string{"Cookies", "History", "Preferences", "Local Storage/leveldb/0*.log", "IndexedDB/*.leveldb/MANIFEST*"} {
				r.harm(d, file, cut)
			}
		}, "cache_storage=7 cookies=2 file_system=2 indexed_db=1 indexed_db_records=1 local_storage=2 service_workers=1 storage_buckets=1",
			"history indexed_db indexed_db_records preferences"},
		"flipped": {func(d *Dir) {
			for _, file := range []string{"Local Storage/leveldb/0*.log", "Session Storage/0*.log", "IndexedDB/*.leveldb/CURRENT",
				"Service Worker/Database/0*.log", "Service Worker/CacheStorage/*/index.txt", "File System/Origins/0*.log"} {
				r.harm(d, file, flip)
			}
			r.harm(d, "Cookies", func(b []byte) []byte { return append(flip(b[:100:100]), b[100:]...) })
		}, "cache_storage=1 cookies=2 file_system=0 indexed_db=1 indexed_db_records=1 local_storage=2 service_workers=0 storage_buckets=1",
			"cache_storage file_system indexed_db indexed_db_records service_workers"},
	} {
		if name == "whole" && !long() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			outer := r.t
			r.t = t
			defer func() { r.t = outer }()
			d := r.copyOf(dir)
			test.harm(d)
			b, report := r.restored(d, doc, Options{RestoreTabs: true})
			v, err := b.Verify(within(t), doc, report)
			if err != nil {
				t.Fatal(err)
			}
			var lost []string
			for _, d := range v.Differences {
				if d.By != state.ByRestore {
					t.Errorf("a difference is blamed on the site, which did nothing: %+v", d)
				}
				if len(lost) == 0 || lost[len(lost)-1] != d.Component {
					lost = append(lost, d.Component)
				}
			}
			if got := strings.Join(lost, " "); got != test.lost {
				t.Errorf("lost: %s, want %s", got, test.lost)
			}
			if got := r.eval(b, url+"/", countAll); got != test.want {
				t.Errorf("the site finds %s, want %s", got, test.want)
			}
			if got := reported(report, v, url+"/", "127.0.0.1"); got != test.want {
				t.Errorf("the report says %s, want %s", got, test.want)
			}
			if got := r.eval(b, url+"/", `sessionStorage.getItem("step") + localStorage.getItem("a").length`); got != "one4" {
				t.Errorf("storage: %s", got)
			}
			for _, c := range report {
				if c.Saved != c.Restored+c.Dropped+c.Expired || c.Dropped > 0 && c.Reason.Code == "" {
					t.Errorf("%+v", c)
				}
			}
			// What was written stays: Chrome does not remove it together with the damage.
			if as, err := b.Close(within(t)); err != nil || as != state.DatadirClean {
				t.Fatalf("%s, %v", as, err)
			}
			p := r.inventory(d)
			if got := fmt.Sprint(len(p.Cookies), " ", len(p.LocalStorage.Areas)); got != "2 1" {
				t.Errorf("after its next close the profile has %s cookies and areas", got)
			}
		})
	}
}
