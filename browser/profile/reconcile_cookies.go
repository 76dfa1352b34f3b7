package profile

import (
	"slices"
	"time"

	"github.com/stasisd/stasis/state"
)

// jarWriteTime bounds the time that Chrome needs to write the cookie jar. It syncs the
// jar to disk before and after it writes, which takes seconds on a busy disk.
const jarWriteTime = 10 * time.Second

// engineShell is the engine that keeps session cookies in memory only.
const engineShell = "shell"

// cookies decides about the cookie jar as a whole: Chrome writes changes in the order in
// which they were made.
func (v *Verdict) cookies(c Copies) {
	switch {
	case c.Crash != nil:
		v.cookiesAfterCrash(c)
	case c.closed():
		if c.Found.Cookies != nil {
			v.Jar = append(slices.Clone(c.Found.Cookies), inMemory(c.Document)...)
		}
		_, damaged := c.Found.Inventory.Damaged(state.ComponentCookies)
		v.Broken.Cookies = c.Document.Complete && (damaged || c.lacksCookies())
		if v.Broken.Cookies {
			v.Cookies = FromDocument
		}
	default:
		v.Cookies = c.defaultSource()
	}
}

// cookiesAfterCrash takes the profile's jar if it is newer than the reading's. One cookie
// that is newer than the reading proves that for the whole jar.
func (v *Verdict) cookiesAfterCrash(c Copies) {
	v.Cookies = FromDocument
	written, unproven := c.Crash.Written.Cookies, c.Crash.unproven(c.Crash.Written.Cookies)
	if !unproven && !written.After(c.Crash.From) {
		return // nothing was written since the reading
	}
	if c.Found.AllCookies == nil {
		v.doubt(state.ComponentCookies, "", "Chrome's cookie file cannot be read, so the cookies are those that Stasis last read over CDP")
		return
	}
	jar := slices.DeleteFunc(slices.Clone(c.Found.AllCookies), func(k state.Cookie) bool { return c.Found.UnreadableCookies[k.Identity()] != "" })
	switch newer := c.Found.CookiesAt.After(c.Crash.Until); {
	case newer, !unproven && written.After(c.Crash.Until.Add(jarWriteTime)):
	case sameJar(jar, c.Document.Cookies):
		return
	case unproven && len(jar) > 0:
		v.doubt(state.ComponentCookies, "", clockSetBack)
	default:
		v.doubt(state.ComponentCookies, "", "Chrome wrote its cookie file while Stasis read the cookies over CDP, so those cookies are restored; a cookie deleted at that time may be back")
		return
	}
	v.Cookies, v.Jar = FromProfile, append(jar, inMemory(c.Document)...)
}

// inMemory returns the cookies of a document that Chrome never writes to disk.
func inMemory(doc state.Document) []state.Cookie {
	return slices.DeleteFunc(slices.Clone(doc.Cookies), func(k state.Cookie) bool { return onDisk(doc, k) })
}

func onDisk(doc state.Document, k state.Cookie) bool {
	return !k.Opaque && (!k.Session || doc.Chrome.Engine != engineShell)
}

// sameJar reports whether two jars have the same cookies with the same values.
func sameJar(a, b []state.Cookie) bool {
	values := map[string]string{}
	for _, k := range a {
		values[k.Identity()] = k.Value
	}
	return len(a) == len(b) && !slices.ContainsFunc(b, func(k state.Cookie) bool {
		value, there := values[k.Identity()]
		return !there || value != k.Value
	})
}

// lacksCookies reports whether a cookie that was read from this profile is missing from
// its jar. A jar that exists and was not read is left to Chrome.
func (c Copies) lacksCookies() bool {
	if !c.Document.IsFromDisk(state.ComponentCookies) || c.Found.Cookies == nil && c.uncounted(state.ComponentCookies) {
		return false
	}
	there := map[string]bool{}
	for _, k := range c.Found.Cookies {
		there[k.Identity()] = true
	}
	return slices.ContainsFunc(c.Document.Cookies, func(k state.Cookie) bool { return onDisk(c.Document, k) && !there[k.Identity()] })
}

// uncounted reports whether the profile has a component, for one that was not read.
func (c Copies) uncounted(component string) bool {
	return slices.ContainsFunc(c.Found.Inventory, func(h state.Holding) bool { return h.Component == component })
}
