package main

import (
	"context"
	"fmt"
	"net/http"
)

// fill stores a number of megabytes in the site's caches: half of it random like
// pictures, which do not compress, half of it text.
const fill = `(async () => {
	const cache = await caches.open("bench");
	for (let n = 0; n < %d; n++) {
		const half = new Uint8Array(1 << 19);
		for (let at = 0; at < half.length; at += 65536) crypto.getRandomValues(half.subarray(at, at + 65536));
		let text = "";
		for (let line = 0; text.length < 1 << 19; line++) text += "line " + line + " of item " + n + ": {\"read\": true, \"score\": " + Math.random() + "}\n";
		await cache.put("/bench/" + n, new Response(new Blob([half, text])));
	}
	return true;
})()`

// sizeSurvey saves and restores environments of several sizes.
func sizeSurvey(ctx context.Context, b *bench) error {
	s := section{
		title: "Size of an environment",
		text: `The site stores this much more in its caches: half of it random bytes, half of it text. The restore reads the archive and is
timed until the create is answered.`,
		head: []string{"added to the probe profile, MB", "archive, KB", "delete with filesystem, ms", "restore, ms"},
	}
	sizes := []int{0, 1, 10, 100}
	if b.heavy {
		sizes = append(sizes, 500)
	}
	for _, size := range sizes {
		row, err := b.measureSize(ctx, size)
		if err != nil {
			return fmt.Errorf("%d MB: %w", size, err)
		}
		s.rows = append(s.rows, row)
	}
	b.surveyed = append(b.surveyed, s)
	return nil
}

// measureSize makes an environment with a number of megabytes, saves it and restores it.
func (b *bench) measureSize(ctx context.Context, size int) ([]string, error) {
	s, err := b.ours.atMe(ctx, obj{})
	if err != nil {
		return nil, err
	}
	t, err := s.front(ctx)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	var kept bool
	if err := t.evaluate(ctx, fmt.Sprintf(fill, size), &kept); err != nil {
		return nil, err
	}
	if err := b.ours.ready(ctx, 1); err != nil {
		return nil, err
	}
	var snapshot string
	save, err := timed(func() (err error) {
		snapshot, err = s.end(ctx, "filesystem", false)
		return err
	})
	if err != nil {
		return nil, err
	}
	var about struct {
		Bytes int64 `json:"size_bytes"`
	}
	if err := b.ours.Call(ctx, http.MethodGet, "/v1/snapshots/"+snapshot, nil, &about); err != nil {
		return nil, err
	}
	kb := float64(about.Bytes) / 1000
	if size == 0 {
		b.figures["size/probe"] = quartiles{kb, kb, kb}
	}
	if err := b.ours.ready(ctx, 0); err != nil {
		return nil, err
	}
	restore, err := timed(func() (err error) {
		s, err = b.ours.create(ctx, obj{"restore_from_environment_id": snapshot})
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := s.end(ctx, "none", false); err != nil {
		return nil, err
	}
	return []string{fmt.Sprint(size), number(kb), number(save), number(restore)}, b.ours.forget(ctx, snapshot)
}
