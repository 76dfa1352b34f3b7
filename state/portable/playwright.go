package portable

import (
	"encoding/json"
	"strings"

	"github.com/stasisd/stasis/state"
)

// storageState is the output of Playwright 1.65's BrowserContext.storageState and the
// input of browser.newContext (NetworkCookie, OriginStorage and IndexedDBDatabase in its
// protocol).
type storageState struct {
	Cookies []playwrightCookie `json:"cookies"`
	Origins []originStorage    `json:"origins"`
}

type playwrightCookie struct {
	Name      string  `json:"name"`
	Value     string  `json:"value"`
	Domain    string  `json:"domain"`
	Path      string  `json:"path"`
	Expires   float64 `json:"expires"` // -1 for a session cookie
	HTTPOnly  bool    `json:"httpOnly"`
	Secure    bool    `json:"secure"`
	SameSite  string  `json:"sameSite"`
	Partition string  `json:"partitionKey,omitempty"`
	Ancestor  *bool   `json:"_crHasCrossSiteAncestor,omitempty"`
}

type originStorage struct {
	Origin string           `json:"origin"`
	Local  []nameValue      `json:"localStorage"`
	DBs    []state.Database `json:"indexedDB,omitempty"`
}

type nameValue struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Playwright writes a document as a storageState.
func Playwright(doc state.Document) ([]byte, []Loss) {
	var lost losses
	out := storageState{Cookies: []playwrightCookie{}, Origins: []originStorage{}}
	for _, c := range doc.Cookies {
		if c.Opaque {
			lost.add(state.ComponentCookies, c.Origin(), 1, "its partition has no name")
			continue
		}
		out.Cookies = append(out.Cookies, toPlaywright(c, &lost))
	}
	at := map[string]int{}
	of := func(name string) *originStorage {
		if _, known := at[name]; !known {
			at[name] = len(out.Origins)
			out.Origins = append(out.Origins, originStorage{Origin: name, Local: []nameValue{}})
		}
		return &out.Origins[at[name]]
	}
	for _, area := range doc.Local {
		if partitioned(area.StorageKey) {
			lost.add(state.ComponentLocalStorage, area.StorageKey, len(area.Items), "the format has no storage of frames below another site")
			continue
		}
		if len(area.Items) == 0 {
			continue
		}
		o := of(origin(area.StorageKey))
		for _, item := range area.Items {
			o.Local = append(o.Local, nameValue{item.Key, item.Value})
		}
	}
	for _, d := range doc.IndexedDB {
		for _, db := range d.Databases {
			for _, store := range db.Stores {
				if store.AutoIncrement {
					lost.add("indexed_db_counter", d.Origin, 1, "the counter of an auto-increment store continues from its highest key")
				}
			}
		}
		of(d.Origin).DBs = d.Databases
	}
	lost.tabs(doc)
	lost.datadir(doc)
	raw, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		panic(err) // strings, numbers, and JSON that was parsed before
	}
	return append(raw, '\n'), lost.list()
}

func toPlaywright(c state.Cookie, lost *losses) playwrightCookie {
	p := playwrightCookie{Name: c.Name, Value: c.Value, Domain: c.Domain, Path: c.Path, Expires: c.Expires,
		HTTPOnly: c.HTTPOnly, Secure: c.Secure, SameSite: c.SameSite}
	if c.Session {
		p.Expires = -1
	}
	if p.SameSite == "" {
		p.SameSite = "Lax"
		lost.add(sameSite, "", 1, "SameSite is written as Lax because the site did not set it")
	}
	if c.Partition != nil {
		p.Partition, p.Ancestor = c.Partition.TopLevelSite, &c.Partition.HasCrossSiteAncestor
	}
	loseAttributes(c, lost)
	return p
}

// ReadPlaywright reads a storageState.
func ReadPlaywright(data []byte) (state.Document, []Loss, error) {
	var lost losses
	doc := document()
	top, err := root(data)
	if err != nil {
		return doc, nil, err
	}
	o, err := top.object()
	if err != nil {
		return doc, nil, err
	}
	if !o.has("cookies") && !o.has("origins") {
		return doc, nil, invalid("$: must have cookies or origins, as storageState has")
	}
	cookies, err := optional(o, "cookies", nil, node.list)
	if err != nil {
		return doc, nil, err
	}
	for _, n := range cookies {
		c, err := fromPlaywright(n, &lost)
		if err != nil {
			return doc, nil, err
		}
		doc.Cookies = append(doc.Cookies, c)
	}
	doc.Cookies = normalise(doc.Cookies, &lost)
	origins, err := optional(o, "origins", nil, node.list)
	if err != nil {
		return doc, nil, err
	}
	seen := map[string]bool{}
	for _, n := range origins {
		if err := readOrigin(n, &doc, seen, &lost); err != nil {
			return doc, nil, err
		}
	}
	credentials, err := optional(o, "credentials", nil, node.list)
	if err != nil {
		return doc, nil, err
	}
	lost.add("passkeys", "", len(credentials), "credentials are not imported")
	o.drop(&lost, "cookies", "origins", "credentials")
	return doc, lost.list(), nil
}

func fromPlaywright(n node, lost *losses) (state.Cookie, error) {
	o, err := n.object()
	if err != nil {
		return state.Cookie{}, err
	}
	c, err := readCookie(o)
	if err != nil {
		return c, err
	}
	if c.SameSite, err = optional(o, "sameSite", "", func(n node) (string, error) { return n.oneOf("Strict", "Lax", "None") }); err != nil {
		return c, err
	}
	partition, err := optional(o, "partitionKey", "", node.text)
	if err != nil {
		return c, err
	}
	// The default is true, as in Playwright's own addCookies.
	ancestor, err := optional(o, "_crHasCrossSiteAncestor", true, node.boolean)
	if err != nil {
		return c, err
	}
	if partition != "" {
		c.Partition = &state.PartitionKey{TopLevelSite: partition, HasCrossSiteAncestor: ancestor}
	}
	o.drop(lost, append(cookieFields, "sameSite", "partitionKey", "_crHasCrossSiteAncestor")...)
	return c, nil
}

func readOrigin(n node, doc *state.Document, seen map[string]bool, lost *losses) error {
	o, err := n.object()
	if err != nil {
		return err
	}
	name, err := o.get("origin").webOrigin()
	if err != nil {
		return err
	}
	if name = strings.ToLower(name); seen[name] {
		return invalid("%s.origin: the origin occurs twice", n.path)
	}
	seen[name] = true
	items, err := optional(o, "localStorage", nil, node.list)
	if err != nil {
		return err
	}
	area := state.Area{StorageKey: name + "/", Items: make([]state.Item, 0, len(items))}
	for _, n := range items {
		pair, err := n.object()
		if err != nil {
			return err
		}
		key, err := pair.get("name").text()
		if err != nil {
			return err
		}
		value, err := pair.get("value").text()
		if err != nil {
			return err
		}
		pair.drop(lost, "name", "value")
		area.Items = append(area.Items, state.Item{Key: key, Value: value})
	}
	if len(area.Items) > 0 {
		doc.Local = append(doc.Local, area)
	}
	dbs, err := optional(o, "indexedDB", nil, node.list)
	if err != nil {
		return err
	}
	d := state.Databases{Origin: name}
	for _, n := range dbs {
		db, err := readDatabase(n, lost)
		if err != nil {
			return err
		}
		d.Databases = append(d.Databases, db)
	}
	if len(d.Databases) > 0 {
		doc.IndexedDB = append(doc.IndexedDB, d)
	}
	files, err := optional(o, "opfs", nil, node.list)
	if err != nil {
		return err
	}
	lost.add("opfs", name, len(files), "files of the origin's private file system are not imported")
	o.drop(lost, "origin", "localStorage", "indexedDB", "opfs")
	return nil
}
