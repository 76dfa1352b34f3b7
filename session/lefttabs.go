package session

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/browser/profile/sessionstorage"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// leftTabs takes the tabs from the session files that Chrome left where these are
// newer than the reading, and of the tabs' sessionStorage, by storage key, what is
// newer. Chrome notes no time there: whether it has written a key since is told by the files
// that the snapshot has of the moment of its reading.
func (s *Service) leftTabs(ctx context.Context, j job, r lastReading, doc state.Document, on sessionstorage.Contents) (state.Document, error) {
	folder := profile.Path(j.dir.Profile())
	written := lastWritten(folder, "Sessions", "Sessions_Encrypted")
	doc.TabsOnDisk = !doc.TabsByURL && (r.unproven(written) || r.tabsOnDisk(ctx, folder, written))
	if doc.TabsOnDisk && r.unproven(written) {
		doc = doubted(doc, state.ComponentTabs, "", setBack)
	}
	m := tabMerge{doc: doc, on: on, once: map[string]int{}, forget: map[string]bool{}}
	m.doc.Tabs = make([]state.Tab, len(doc.Tabs))
	for i, tab := range doc.Tabs {
		m.doc.Tabs[i] = tab
		for _, area := range tab.Session {
			m.once[area.StorageKey]++
		}
	}
	stored := lastWritten(folder, inspect.SessionStorage)
	if m.written = stored.After(r.from) || r.unproven(stored); m.written {
		var err error
		if m.was, err = s.sessionStorageOf(ctx, r); err != nil {
			s.Log.Warn("the tabs' sessionStorage of the last snapshot could not be read", "session", j.rec.ID, "error", err)
			m.was = sessionstorage.Contents{}
		}
	}
	for i, tab := range doc.Tabs {
		m.doc.Tabs[i].Session = nil
		for _, area := range tab.Session {
			m.area(i, area)
		}
	}
	if len(m.forget) == 0 {
		return m.doc, nil
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return doc, fault.Wrap(err, fault.StoreFailed, "session.lastread", "the profile cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	done, err := sessionstorage.Forget(ctx, root, m.forget)
	if err == nil && !done {
		m.doc = doubted(m.doc, state.ComponentSessionStorage, "", "what Chrome left of it cannot be changed, so what was read last is there only in tabs of which it had written nothing")
	}
	return m.doc, err
}

// tabsOnDisk reports whether the session files of a profile, last written at a
// time, are newer than the reading: those written just after it are where they name
// all that was read.
func (r lastReading) tabsOnDisk(ctx context.Context, folder string, written time.Time) bool {
	if !written.After(r.until) || written.After(r.until.Add(writeTime)) {
		return written.After(r.until)
	}
	files, err := inspect.ReadTabs(ctx, folder)
	return err == nil && !slices.ContainsFunc(r.doc.Tabs, func(t state.Tab) bool { return t.URL != "about:blank" && !files.Names(t.URL) })
}

// tabMerge takes the tabs' sessionStorage from a reading and from the datadir.
type tabMerge struct {
	doc     state.Document
	on, was sessionstorage.Contents // what is there, and what was
	written bool                    // something was, since
	once    map[string]int          // how many tabs have a storage key
	forget  map[string]bool         // what goes from the datadir, for it is older
}

// area takes a tab's sessionStorage of one storage key.
func (m *tabMerge) area(tab int, read state.Area) {
	add := func(a state.Area) { m.doc.Tabs[tab].Session = append(m.doc.Tabs[tab].Session, a) }
	var since [][]state.Item
	known := true
	if m.written {
		since, known = m.on.Since(m.was, read.StorageKey)
	}
	switch {
	case known && len(since) == 1 && m.once[read.StorageKey] == 1: // the datadir's is newer
		if !m.doc.TabsOnDisk {
			add(state.Area{StorageKey: read.StorageKey, Items: since[0]})
		}
		return
	case m.doc.TabsOnDisk && m.on.Has(read):
		return // Chrome brings it back
	case known && len(since) == 0:
	case m.on.Has(read):
	default:
		m.doc = doubted(m.doc, state.ComponentSessionStorage, read.StorageKey,
			"whether Chrome had written this tab's since it was read last cannot be told, so it is as it was read")
	}
	add(read)
	if m.doc.TabsOnDisk {
		m.forget[read.StorageKey] = true
	}
}

// sessionStorageOf reads the sessionStorage in the files of a reading's snapshot.
func (s *Service) sessionStorageOf(ctx context.Context, r lastReading) (sessionstorage.Contents, error) {
	release, err := s.hold(ctx, r.row, "read for a rescue")
	if err != nil {
		return sessionstorage.Contents{}, err
	}
	defer release()
	saved, err := s.Vault.Open(ctx, locationOf(r.row.UserID, r.row.SessionID), r.row.ID)
	if err != nil {
		return sessionstorage.Contents{}, err
	}
	dir, err := s.newDir()
	if err != nil {
		return sessionstorage.Contents{}, err
	}
	defer s.clear(dir)
	if _, err := s.Vault.Unpack(ctx, saved, dir.Profile(), snapshot.UnpackOptions{Limits: s.cfg.Unpack,
		Accept: func(name string) bool {
			return strings.HasPrefix(name, profile.Default+"/"+inspect.SessionStorage+"/")
		}}); err != nil {
		return sessionstorage.Contents{}, err
	}
	root, err := os.OpenRoot(profile.Path(dir.Profile()))
	if err != nil {
		return sessionstorage.Contents{}, fault.Wrap(err, fault.StoreFailed, "session.lastread", "the files cannot be opened")
	}
	defer func() { _ = root.Close() }() // only a handle
	return sessionstorage.Read(ctx, root.FS())
}
