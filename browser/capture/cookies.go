package capture

import (
	"github.com/chromedp/cdproto/network"

	"github.com/stasisd/stasis/state"
)

func fromCDP(c *network.Cookie) state.Cookie {
	out := state.Cookie{
		Name: c.Name, Value: c.Value, Domain: c.Domain, Path: c.Path, Expires: c.Expires,
		HTTPOnly: c.HTTPOnly, Secure: c.Secure, Session: c.Session,
		SameSite: string(c.SameSite), Priority: string(c.Priority),
		SourceScheme: string(c.SourceScheme), SourcePort: c.SourcePort,
		Opaque: c.PartitionKeyOpaque,
	}
	if c.PartitionKey != nil {
		out.Partition = &state.PartitionKey{
			TopLevelSite:         c.PartitionKey.TopLevelSite,
			HasCrossSiteAncestor: c.PartitionKey.HasCrossSiteAncestor,
		}
	}
	return out
}
