//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/library/audit"
)

// recheckDelay is how long a check beside a running daemon waits before it looks again at what
// was wrong.
const recheckDelay = 2 * time.Second

type storeCheckCmd struct {
	storageFlags
	progressFlag
	ReadData      bool   `help:"Read every archive down to its files; by default only sizes are compared." env:"-"`
	Repair        bool   `help:"Rebuild snapshot_latest.json and manifest.json from the stored documents. No daemon may run." env:"-"`
	RemoveOrphans bool   `help:"Remove orphans: archives that no document names, and documents that the catalogue does not list. No daemon may run." env:"-"`
	Grace         period `help:"How old an archive or a document must be to count as an orphan." default:"24h" env:"-"`
	JSON          bool   `help:"Print one JSON object per line; the last one is the summary." name:"json" env:"-"`
}

// Run prints a line for each finding as soon as it is made, and a summary.
func (c *storeCheckCmd) Run(ctx context.Context) (err error) {
	defer func() { err = interrupted(ctx, err, "interrupted: not everything was checked") }()
	if c.Grace < 0 {
		return fault.New(fault.Config, "store.check", "--grace: must be 0 or more")
	}
	write := c.Repair || c.RemoveOrphans
	s, err := c.openExisting(ctx, write)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	o := audit.Options{ReadData: c.ReadData, Grace: c.Grace.Duration(), Repair: c.Repair, Remove: c.RemoveOrphans}
	if !write {
		o.RecheckDelay = recheckDelay
	}
	var records *audit.Records
	if s.catalogue != nil {
		records = &audit.Records{Sessions: s.catalogue.Sessions, Snapshots: s.catalogue.Snapshots, Defaults: s.catalogue.Defaults}
	}
	show, sum := printFinding, printSummary
	if c.JSON {
		show, sum = printFindingJSON, printSummaryJSON
	}
	bar, err := c.archives(ctx, s.store)
	if err != nil {
		return err
	}
	o.Progress = func(n int) { _ = bar.Set(n) }
	lost := false
	out, err := audit.Run(ctx, s.vault, records, time.Now, o, func(f audit.Finding) error {
		lost = lost || f.Kind == audit.CatalogueLost
		_ = bar.Clear()
		return show(f)
	})
	erase(bar)
	if err != nil {
		return err
	}
	if err := sum(out, records != nil); err != nil {
		return err
	}
	if lost {
		return exitError{exitDamaged, fmt.Sprintf("the catalogue (%s) lists none of the %d snapshots: give the daemon's --store and --database, or restore the catalogue from a backup; "+
			"without a backup, import each archive: stasis snapshot import %s --user … --save-as-default",
			c.catalogueName(s.dir), out.Snapshots, s.at.archive("ID"))}
	}
	if !out.OK() {
		return exitError{exitDamaged, "the check found damage"}
	}
	return nil
}

// printFinding prints a finding for people.
func printFinding(f audit.Finding) error {
	done := ""
	switch {
	case f.Repaired:
		done = " [repaired]"
	case f.Removed:
		done = " [removed]"
	case f.Repairable:
		done = " [repairable]"
	}
	about := printable(f.Key)
	switch {
	case f.Kind == audit.CatalogueLost:
		about = "the catalogue"
	case f.Kind == audit.DefaultBroken:
		about = "default of user " + strconv.Quote(f.UserID)
	case f.UserID != "":
		about += " (user " + strconv.Quote(f.UserID) + ")"
	}
	_, err := fmt.Printf("%-9s  %s: %s: %s%s\n", f.Severity, f.Kind, about, f.What, done)
	return err
}

// printSummary prints the summary for people.
func printSummary(s audit.Summary, records bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s and %s of agents in %s, %s of %d bytes",
		english.Plural(s.Snapshots, "snapshot", ""), english.Plural(s.Others, "document", ""),
		english.Plural(s.Locations, "location", ""), english.Plural(s.Archives, "archive", ""), s.Bytes)
	if records {
		fmt.Fprintf(&b, "; the catalogue lists %s\n", english.Plural(s.Recorded, "snapshot", ""))
	} else {
		b.WriteString("\nthere is no catalogue to compare with; only the store was checked\n")
	}
	var found []string
	for _, severity := range audit.Severities() {
		if n := s.Found[severity]; n > 0 {
			found = append(found, fmt.Sprintf("%d %s", n, severity))
		}
	}
	if s.Repaired+s.Removed > 0 {
		fmt.Fprintf(&b, "%d repaired, %d removed\n", s.Repaired, s.Removed)
	}
	if len(found) == 0 {
		b.WriteString("no damage found\n")
	} else {
		fmt.Fprintf(&b, "found: %s\n", strings.Join(found, ", "))
	}
	_, err := os.Stdout.WriteString(b.String())
	return err
}

// findingLine is a finding for scripts.
type findingLine struct {
	Type       string `json:"type"` // finding
	Severity   string `json:"severity"`
	Kind       string `json:"kind"`
	Key        string `json:"key,omitempty"`
	Owner      string `json:"owner,omitempty"`
	UserID     string `json:"user_id,omitempty"`
	SessionID  string `json:"session_id,omitempty"`
	Scope      string `json:"scope,omitempty"`
	ScopeID    string `json:"scope_id,omitempty"`
	SnapshotID string `json:"snapshot_id,omitempty"`
	ArchiveID  string `json:"archive_id,omitempty"`
	Message    string `json:"message"`
	Repairable bool   `json:"repairable"`
	Repaired   bool   `json:"repaired"`
	Removed    bool   `json:"removed"`
}

func printFindingJSON(f audit.Finding) error {
	at := f.Location
	return json.NewEncoder(os.Stdout).Encode(findingLine{Type: "finding", Severity: string(f.Severity), Kind: string(f.Kind), Key: f.Key,
		Owner: at.Owner, UserID: f.UserID, SessionID: at.Session, Scope: at.Scope, ScopeID: at.ScopeID, SnapshotID: f.Snapshot,
		ArchiveID: f.Archive, Message: f.What, Repairable: f.Repairable, Repaired: f.Repaired, Removed: f.Removed})
}

// summaryLine is the summary for scripts.
type summaryLine struct {
	Type      string                 `json:"type"` // summary
	Sound     bool                   `json:"sound"`
	Catalogue bool                   `json:"catalogue"` // false if there was none to compare with
	Recorded  int                    `json:"recorded"`
	Locations int                    `json:"locations"`
	Snapshots int                    `json:"snapshots"`
	Documents int                    `json:"documents"` // of agents
	Archives  int                    `json:"archives"`
	Bytes     int64                  `json:"bytes"`
	Found     map[audit.Severity]int `json:"found"`
	Repaired  int                    `json:"repaired"`
	Removed   int                    `json:"removed"`
}

func printSummaryJSON(s audit.Summary, records bool) error {
	return json.NewEncoder(os.Stdout).Encode(summaryLine{Type: "summary", Sound: s.OK(), Catalogue: records, Recorded: s.Recorded,
		Locations: s.Locations, Snapshots: s.Snapshots, Documents: s.Others, Archives: s.Archives, Bytes: s.Bytes,
		Found: s.Found, Repaired: s.Repaired, Removed: s.Removed})
}
