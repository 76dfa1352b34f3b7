package portable

import (
	"encoding/json"

	"github.com/stasisd/stasis/state"
)

// puppeteerCookie is the output of Puppeteer 24's browser.cookies() and page.cookies()
// and the input of setCookie. It is CDP's Network.Cookie with a different partition key;
// in page.cookies() that key is a string.
type puppeteerCookie struct {
	Name         string              `json:"name"`
	Value        string              `json:"value"`
	Domain       string              `json:"domain"`
	Path         string              `json:"path"`
	Expires      float64             `json:"expires"`
	Size         int                 `json:"size"`
	HTTPOnly     bool                `json:"httpOnly"`
	Secure       bool                `json:"secure"`
	Session      bool                `json:"session"`
	SameSite     string              `json:"sameSite,omitempty"`
	Priority     string              `json:"priority,omitempty"`
	SourceScheme string              `json:"sourceScheme,omitempty"`
	SourcePort   int64               `json:"sourcePort,omitempty"`
	Partition    *puppeteerPartition `json:"partitionKey,omitempty"`
}

type puppeteerPartition struct {
	SourceOrigin         string `json:"sourceOrigin"`
	HasCrossSiteAncestor bool   `json:"hasCrossSiteAncestor"`
}

// Puppeteer writes a document's cookies as a JSON array for Puppeteer.
func Puppeteer(doc state.Document) ([]byte, []Loss) {
	var lost losses
	out := []puppeteerCookie{}
	for _, c := range doc.Cookies {
		if c.Opaque {
			lost.add(state.ComponentCookies, c.Origin(), 1, "its partition has no name")
			continue
		}
		p := puppeteerCookie{Name: c.Name, Value: c.Value, Domain: c.Domain, Path: c.Path, Expires: c.Expires,
			Size: len(c.Name) + len(c.Value), HTTPOnly: c.HTTPOnly, Secure: c.Secure, Session: c.Session,
			SameSite: c.SameSite, Priority: c.Priority, SourceScheme: c.SettableScheme(), SourcePort: c.SourcePort}
		if c.Session {
			p.Expires = -1
		}
		if c.Partition != nil {
			p.Partition = &puppeteerPartition{c.Partition.TopLevelSite, c.Partition.HasCrossSiteAncestor}
		}
		out = append(out, p)
	}
	lost.storage(doc)
	raw, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		panic(err) // strings and finite numbers
	}
	return append(raw, '\n'), lost.list()
}

// ReadPuppeteer reads a JSON array of Puppeteer's cookies.
func ReadPuppeteer(data []byte) (state.Document, []Loss, error) {
	var lost losses
	doc := document()
	top, err := root(data)
	if err != nil {
		return doc, nil, err
	}
	list, err := top.list()
	if err != nil {
		return doc, nil, err
	}
	for _, n := range list {
		c, err := fromPuppeteer(n, &lost)
		if err != nil {
			return doc, nil, err
		}
		doc.Cookies = append(doc.Cookies, c)
	}
	doc.Cookies = normalise(doc.Cookies, &lost)
	return doc, lost.list(), nil
}

func fromPuppeteer(n node, lost *losses) (state.Cookie, error) {
	o, err := n.object()
	if err != nil {
		return state.Cookie{}, err
	}
	c, err := readCookie(o)
	if err != nil {
		return c, err
	}
	word := func(name string, allowed ...string) (text string) {
		if err == nil {
			text, err = optional(o, name, "", func(n node) (string, error) { return n.oneOf(allowed...) })
		}
		return text
	}
	if c.SameSite = word("sameSite", "Strict", "Lax", "None", "Default"); c.SameSite == "Default" {
		c.SameSite = ""
	}
	c.Priority = word("priority", "Low", "Medium", "High")
	c.SourceScheme = word("sourceScheme", "Unset", "NonSecure", "Secure")
	if err != nil {
		return c, err
	}
	port, err := optional(o, "sourcePort", 0, node.number)
	if err != nil {
		return c, err
	}
	if c.SourcePort = int64(port); float64(c.SourcePort) != port || port < -1 || port > 65535 {
		return c, o.get("sourcePort").wrong("a port, or -1")
	}
	if c.Opaque, err = optional(o, "partitionKeyOpaque", false, node.boolean); err != nil {
		return c, err
	}
	if o.has("partitionKey") {
		if c.Partition, err = readPartition(o.get("partitionKey"), lost); err != nil {
			return c, err
		}
	}
	o.drop(lost, append(cookieFields, "sameSite", "priority", "sourceScheme", "sourcePort",
		"partitionKey", "partitionKeyOpaque", "size", "session", "sameParty")...)
	return c, nil
}

// readPartition reads a partition key: an object, or only the site.
func readPartition(n node, lost *losses) (*state.PartitionKey, error) {
	if site, err := n.text(); err == nil {
		return &state.PartitionKey{TopLevelSite: site}, nil
	}
	o, err := n.object()
	if err != nil {
		return nil, n.wrong("a string or an object")
	}
	p := &state.PartitionKey{}
	if p.TopLevelSite, err = o.get("sourceOrigin").text(); err != nil {
		return nil, err
	}
	if p.HasCrossSiteAncestor, err = optional(o, "hasCrossSiteAncestor", false, node.boolean); err != nil {
		return nil, err
	}
	o.drop(lost, "sourceOrigin", "hasCrossSiteAncestor")
	return p, nil
}
