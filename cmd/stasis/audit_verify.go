package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/stasisd/stasis/client"
	"github.com/stasisd/stasis/profiles"
)

type auditVerifyCmd struct {
	remoteDaemon
	JSON bool   `help:"Print the result as JSON, for programs." name:"json" env:"-"`
	File string `help:"Check this file of --audit-file, without a daemon. It may begin with any entry." placeholder:"PATH" env:"-"`
	Head string `help:"Require that the log has an entry with this hash, which an earlier check printed. So it is found if the end of the log was removed, or all of it rewritten." placeholder:"HASH" env:"-"`
}

// AfterApply replaces that of remoteDaemon, which needs a key: a file needs none.
func (c *auditVerifyCmd) AfterApply() error {
	if c.File != "" {
		return nil
	}
	return c.remoteDaemon.AfterApply()
}

// verifiedAudit is the result of a check.
type verifiedAudit struct {
	OK     bool               `json:"ok"`
	Count  int64              `json:"entries"`
	First  int64              `json:"first"`
	Last   int64              `json:"last"`
	Head   profiles.AuditHash `json:"head"`
	Broken *brokenAudit       `json:"broken"` // null: nothing is wrong
}

type brokenAudit struct {
	Number int64  `json:"number"` // of the first entry that is wrong or missing; 0: the head is missing
	Why    string `json:"why"`
}

// Run checks the log from its oldest entry to its newest.
func (c *auditVerifyCmd) Run(ctx context.Context) error {
	var head profiles.AuditHash
	if c.Head != "" {
		if err := head.UnmarshalText([]byte(c.Head)); err != nil {
			return exitError{exitUsage, "--head: " + err.Error() + ", as an earlier check printed them"}
		}
	}
	entries := c.entries(ctx)
	if c.File != "" {
		file, err := os.Open(c.File)
		if err != nil {
			return exitError{exitUsage, "--file: " + err.Error()}
		}
		defer func() { _ = file.Close() }() // it was only read
		entries = linesOf(file)
	}
	var chain profiles.AuditChain
	broken, err := checkAudit(&chain, entries, head, c.File == "")
	if err != nil {
		return c.explain(err)
	}
	return c.report(chain, broken)
}

// checkAudit checks entries. The error is that of reading them.
func checkAudit(chain *profiles.AuditChain, entries iter.Seq2[profiles.AuditEntry, error], head profiles.AuditHash, whole bool) (*brokenAudit, error) {
	found := head == profiles.AuditHash{}
	for e, err := range entries {
		if err == nil {
			err = chain.Add(e)
		}
		var broken *profiles.BrokenAudit
		if errors.As(err, &broken) {
			return &brokenAudit{broken.Number, broken.Why}, nil
		}
		if err != nil {
			return nil, err
		}
		found = found || e.Hash == head
	}
	if whole {
		var broken *profiles.BrokenAudit
		if errors.As(chain.CheckBegin(), &broken) {
			return &brokenAudit{broken.Number, broken.Why}, nil
		}
	}
	if !found {
		return &brokenAudit{Why: "no entry has the hash of --head: entries were removed at the end, or the log was rewritten"}, nil
	}
	return nil, nil
}

// report prints the result.
func (c *auditVerifyCmd) report(chain profiles.AuditChain, broken *brokenAudit) error {
	if c.JSON {
		if err := printJSON(verifiedAudit{OK: broken == nil, Count: chain.Count, First: chain.First.Number, Last: chain.Last.Number, Head: chain.Last.Hash, Broken: broken}); err != nil {
			return err
		}
	}
	switch {
	case broken != nil && broken.Number > 0:
		return exitError{exitDamaged, fmt.Sprintf("the audit log is not what was written: entry %d %s", broken.Number, broken.Why)}
	case broken != nil:
		return exitError{exitDamaged, "the audit log is not what was written: " + broken.Why}
	case c.JSON:
		return nil
	}
	_, err := fmt.Printf("ok: %d entries, from %d to %d\nhead: %s\n", chain.Count, chain.First.Number, chain.Last.Number, chain.Last.Hash)
	return err
}

// entries returns the entries of the daemon, the oldest first.
func (c *auditVerifyCmd) entries(ctx context.Context) iter.Seq2[profiles.AuditEntry, error] {
	return func(yield func(profiles.AuditEntry, error) bool) {
		for e, err := range c.api().Audit(ctx, client.AuditFilter{OldestFirst: true}) {
			var entry profiles.AuditEntry
			if err == nil {
				entry, err = entryOf(e)
			}
			if !yield(entry, err) {
				return
			}
		}
	}
}

// entryOf converts an entry, whose JSON is the same in both types.
func entryOf(e client.AuditEntry) (entry profiles.AuditEntry, err error) {
	text, err := json.Marshal(e)
	if err != nil {
		return entry, err
	}
	return entry, json.Unmarshal(text, &entry)
}

// linesOf returns the entries of a file. A line that is no entry counts as broken, except
// one at the end that is not complete, which a killed daemon leaves.
func linesOf(file io.Reader) iter.Seq2[profiles.AuditEntry, error] {
	return func(yield func(profiles.AuditEntry, error) bool) {
		in := bufio.NewReader(file)
		for last := int64(0); ; {
			line, err := in.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				return
			}
			var e profiles.AuditEntry
			if err == nil {
				if wrong := strictly(line, &e); wrong != nil {
					err = &profiles.BrokenAudit{Number: last + 1, Why: "is not an entry: " + wrong.Error()}
				}
			}
			if last = e.Number; !yield(e, err) {
				return
			}
		}
	}
}

// strictly decodes JSON that may have only the fields of v, since others are not hashed.
func strictly(line []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	return d.Decode(v)
}
