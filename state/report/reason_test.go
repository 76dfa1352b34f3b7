package report_test

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stasisd/stasis/state/report"
)

// The code decides whether a line is a loss, whatever its text is.
func TestCodeDecides(t *testing.T) {
	for code, want := range map[report.Code]bool{
		report.LeftOut: true, report.NotInShell: true, report.TabsUnwanted: true,
		report.NoTime: false, report.Damaged: false, report.NotCounted: false, report.PasskeysUnwanted: false, report.Other: false, "": false,
	} {
		for _, text := range []string{"", "worded anew", "left out by origins", "restore_tabs is false: 3 more", "there was no time"} {
			line := report.Component{Name: "tabs", Saved: 1, Dropped: 1, Reason: code.With(text)}
			if line.OnPurpose() != want {
				t.Errorf("%s, %q: %t", code, text, line.OnPurpose())
			}
			data, err := json.Marshal(line)
			var again report.Component
			if err != nil || code != "" && (json.Unmarshal(data, &again) != nil || again != line) {
				t.Errorf("%s, %q is read back as %+v, %v", code, text, again, err)
			}
		}
	}
}

// Added-up lines keep their code: what was left out on purpose is still no loss.
func TestBoundedKeepsTheCode(t *testing.T) {
	var lines []report.Component
	for range report.MaxLines * 2 {
		lines = append(lines, report.Component{Name: "tabs", Saved: 1, Dropped: 1, Reason: report.TabsUnwanted.With("worded anew")},
			report.Component{Name: "tabs", Saved: 1, Dropped: 1, Reason: report.NotOpened.With("restore_tabs is false")})
	}
	sums := map[report.Code]int{}
	for _, line := range report.Bounded(lines) {
		sums[line.Reason.Code] += line.Dropped
	}
	if sums[report.TabsUnwanted] != 2*report.MaxLines || sums[report.NotOpened]+sums[report.AddedUp] != 2*report.MaxLines {
		t.Errorf("%v", sums)
	}
}

// Lines that a version without codes stored are classified as that version did. That
// version wrote the file, which never changes.
func TestStoredLines(t *testing.T) {
	file, err := os.Open("testdata/stored.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	n := 0
	for rows := bufio.NewScanner(file); rows.Scan(); n++ {
		var row struct {
			Line      report.Component
			OnPurpose bool `json:"on_purpose"`
			NoTime    bool `json:"no_time"`
		}
		if err := json.Unmarshal(rows.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		line := row.Line
		if line.OnPurpose() != row.OnPurpose || (line.Reason.Code == report.NoTime) != row.NoTime || line.Reason.Code == "" || line.Reason.Text == "" || line.Name == "" {
			t.Errorf("%s\nis read as %+v", rows.Text(), line)
		}
		if uncounted := line.Reason.Code == report.NotCounted; uncounted != strings.HasPrefix(line.Reason.Text, "not counted") {
			t.Errorf("%s: %s", line.Reason.Text, line.Reason.Code)
		}
	}
	if n != 14 {
		t.Errorf("%d lines", n)
	}
}
