package api

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/stasisd/stasis/fault"
)

// patch reads a JSON merge patch (RFC 7396) for a document whose wire struct is shape, a
// pointer. It checks the patch like any body, except that null means removal.
func (d *bodyDecoder) patch(c *call, shape any) (object, error) {
	data, err := d.read(c)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	if err := checkJSONType(c.Request().Header.Get("Content-Type"), "application/json", "application/merge-patch+json"); err != nil {
		return nil, err
	}
	value, err := parseJSON(c.Request().Context(), data)
	if err != nil {
		return nil, err
	}
	changes, ok := value.(object)
	if !ok {
		return nil, fault.New(fault.InvalidRequest, "api.patch", "body: must be an object, not %s", describe(value))
	}
	var b binder
	if err := b.bind(changes, shape); err != nil || d.warnUnknown {
		return changes, err
	}
	return changes, unknownFields("field", b.unknown)
}

// applyPatch applies a merge patch to a document and decodes the result into dst, a pointer to
// a wire struct.
func applyPatch(ctx context.Context, document any, changes object, dst any) error {
	data, err := json.Marshal(document)
	if err != nil {
		return err
	}
	value, err := parseJSON(ctx, data)
	if err != nil {
		return err
	}
	var b binder // patch has refused unknown names already
	return b.bind(mergePatch(value, changes), dst)
}

// mergePatch implements MergePatch of RFC 7396.
func mergePatch(target any, changes object) object {
	was, _ := target.(object)
	now := object{}
	for _, m := range was {
		if !slices.ContainsFunc(changes, func(c member) bool { return c.name == m.name }) {
			now = append(now, m)
		}
	}
	for _, c := range changes {
		if c.value == nil {
			continue
		}
		inner, ok := c.value.(object)
		if !ok {
			now = append(now, c)
			continue
		}
		var into any
		if i := slices.IndexFunc(was, func(m member) bool { return m.name == c.name }); i >= 0 {
			into = was[i].value
		}
		now = append(now, member{c.name, mergePatch(into, inner)})
	}
	return now
}
