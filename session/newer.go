package session

import (
	"slices"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/state"
)

// writeTime is how long Chrome takes at most, on any machine that is of use, to
// write what it had collected: a write that ends later than this after a reading
// began after it, and has all that the reading has.
const writeTime = 2 * time.Second

// jarTime is that for the jar, which Chrome brings to the disk before and after it
// writes: a disk that is busy holds that up for seconds.
const jarTime = 10 * time.Second

// setBack is why it is not known which copy is newer, where times do not tell.
const setBack = "the clock was set back since it was read last, so which is newer cannot be told, and it is as Chrome left it"

// unproven reports whether the time at which Chrome wrote something proves nothing: the
// reading is in the future, so the clock was set back, and that time is not, so it may
// be from before as well as from after that.
func (r lastReading) unproven(written time.Time) bool {
	return r.until.After(r.now) && !written.IsZero() && !written.After(r.now)
}

// cookies takes the jar that Chrome left, written at a time, where it is newer than
// the reading's. Chrome writes all changes in the order in which they were made, so
// one cookie on the disk that is newer than the reading proves that for the jar.
func (r lastReading) cookies(doc state.Document, found inspect.Profile, written time.Time) state.Document {
	unproven := r.unproven(written)
	if !unproven && !written.After(r.from) {
		return doc // nothing was written since
	}
	if found.Listed == nil {
		return doubted(doc, state.ComponentCookies, "", "the jar that Chrome left cannot be read, so the cookies are as they were read last")
	}
	jar := slices.DeleteFunc(slices.Clone(found.Listed), func(c state.Cookie) bool { return found.Foreign[c.Identity()] != "" })
	switch newer := found.CookiesAt.After(r.until); {
	case newer, !unproven && written.After(r.until.Add(jarTime)):
	case sameJar(jar, doc.Cookies):
		return doc
	case unproven && len(jar) > 0:
		doc = doubted(doc, state.ComponentCookies, "", setBack)
	default:
		return doubted(doc, state.ComponentCookies, "", "Chrome wrote the jar as it was read last, so the cookies are as they were read: one that was deleted just then may be back")
	}
	for _, c := range doc.Cookies { // that are on no disk
		if c.Opaque || c.Session && doc.Chrome.Engine == browser.EngineShell {
			jar = append(jar, c)
		}
	}
	doc.Cookies = jar
	return doc
}

// sameJar reports whether two jars have the same cookies with the same values.
func sameJar(a, b []state.Cookie) bool {
	values := map[string]string{}
	for _, c := range a {
		values[c.Identity()] = c.Value
	}
	return len(a) == len(b) && !slices.ContainsFunc(b, func(c state.Cookie) bool {
		value, there := values[c.Identity()]
		return !there || value != c.Value
	})
}

// local leaves in the document the localStorage that Chrome had not written since
// it was read: the datadir has the rest as it is, or newer. Chrome notes with each
// storage key when it wrote it.
func (r lastReading) local(doc state.Document, found localstorage.Contents, written time.Time) state.Document {
	const both = "Chrome wrote it as it was read last, so it is as it was read"
	var newer []state.Area
	for _, area := range doc.Local {
		last, noted := found.Commits[area.StorageKey]
		had, _ := r.doc.Inventory.Of(state.ComponentLocalStorage, area.StorageKey)
		switch {
		case found.Commits == nil && !written.After(r.from) && !r.unproven(written): // nothing was written since
		case found.Commits == nil:
			doc = doubted(doc, state.ComponentLocalStorage, area.StorageKey, "what Chrome left of it cannot be read, so it is as it was read last")
		case found.Has(area):
			continue
		case noted && !last.Emptied && r.unproven(last.At), last.Emptied && had.Items == 0 && r.unproven(written):
			doc = doubted(doc, state.ComponentLocalStorage, area.StorageKey, setBack)
			continue
		case noted && !last.Emptied && last.At.After(r.until):
			continue
		case noted && !last.Emptied && last.At.After(r.from):
			doc = doubted(doc, state.ComponentLocalStorage, area.StorageKey, both)
		case last.Emptied && had.Items > 0:
			continue // it was there when it was saved, and was emptied since
		case !noted && had.Items > 0:
			doc = doubted(doc, state.ComponentLocalStorage, area.StorageKey, "it is gone without a trace, as of a database that was begun anew, so it is as it was read last")
		case last.Emptied && written.After(r.until):
			doc = doubted(doc, state.ComponentLocalStorage, area.StorageKey, "whether it was emptied before or after it was read last cannot be told, so it is as it was read")
		}
		newer = append(newer, area)
	}
	doc.Local = newer
	if doc.Local == nil {
		doc.Local = []state.Area{}
	}
	return doc
}
