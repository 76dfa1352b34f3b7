package quota

import "context"

// Used is how much a holder has, and the quota that is in force; nil: there is none. It is
// the wire format.
type Used struct {
	Used  int64  `json:"used"`
	Limit *int64 `json:"limit"`
}

// Sources know how much a holder has, by the name of the quota.
type Sources map[Name]func(ctx context.Context, h Holder) (int64, error)

// Use returns how much a holder has of everything that has a source. Keys have no standbys.
func (s Sources) Use(ctx context.Context, h Holder, quotas Quotas) (map[Name]Used, error) {
	use := map[Name]Used{}
	for name, source := range s {
		if h.Kind == Key && name == Standbys {
			continue
		}
		n, err := source(ctx, h)
		if err != nil {
			return nil, err
		}
		use[name] = Used{Used: n, Limit: quotas.Of(name)}
	}
	return use, nil
}
