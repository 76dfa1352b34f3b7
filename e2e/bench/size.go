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

// sizeRounds is how often each size is restored.
const sizeRounds = 6

// readFill reads an item of the caches.
const readFill = `caches.open("bench").then((cache) => cache.match("/bench/0")).then((item) => item ? item.blob() : null).then((blob) => blob ? blob.size : 0)`

// sizeSurvey saves and restores environments of several sizes.
func sizeSurvey(ctx context.Context, b *bench) error {
	s := section{
		title: "Size of an environment",
		text: fmt.Sprintf(`The site stores this much more in its caches: half of it random bytes, half of it text. The restore is timed until the create
is answered, and until the page has read an item of the caches. Large caches are unpacked beside the page. Each size is restored
%d times.`, sizeRounds),
		head: []string{"added to the probe profile, MB", "archive, KB", "delete with filesystem, ms", "restore, ms", "an item read, ms"},
	}
	sizes := []int{0, 1, 10, 100}
	if b.heavy {
		sizes = append(sizes, 500)
	}
	restores := map[int][]float64{}
	for _, size := range sizes {
		row, times, err := b.measureSize(ctx, size)
		if err != nil {
			return fmt.Errorf("%d MB: %w", size, err)
		}
		s.rows = append(s.rows, row)
		restores[size] = times
	}
	b.figures["size/100"] = ratios(restores[100], restores[0])
	b.surveyed = append(b.surveyed, s)
	return nil
}

// measureSize makes an environment with a number of megabytes, saves it and restores it.
// restores are the times until the creates were answered, in milliseconds.
func (b *bench) measureSize(ctx context.Context, size int) (row []string, restores []float64, err error) {
	s, err := b.ours.atMe(ctx, obj{})
	if err != nil {
		return nil, nil, err
	}
	t, err := s.front(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer t.Close()
	var kept bool
	if err := t.evaluate(ctx, fmt.Sprintf(fill, size), &kept); err != nil {
		return nil, nil, err
	}
	if err := b.ours.ready(ctx, 1); err != nil {
		return nil, nil, err
	}
	var snapshot string
	save, err := timed(func() (err error) {
		snapshot, err = s.end(ctx, "filesystem", false)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	var about struct {
		Bytes int64 `json:"size_bytes"`
	}
	if err := b.ours.Call(ctx, http.MethodGet, "/v1/snapshots/"+snapshot, nil, &about); err != nil {
		return nil, nil, err
	}
	kb := float64(about.Bytes) / 1000
	if size == 0 {
		b.figures["size/probe"] = quartiles{kb, kb, kb}
	}
	var reads []float64
	for range sizeRounds {
		restore, read, err := b.restoreSize(ctx, snapshot, size > 0)
		if err != nil {
			return nil, nil, err
		}
		restores, reads = append(restores, restore), append(reads, read)
	}
	row = []string{fmt.Sprint(size), number(kb), number(save), spread(restores).String(), spread(reads).String()}
	return row, restores, b.ours.forget(ctx, snapshot)
}

// restoreSize restores a snapshot. It returns when the create was answered and when the page
// had read an item of its caches, in milliseconds. filled says that there is one.
func (b *bench) restoreSize(ctx context.Context, snapshot string, filled bool) (restore, read float64, err error) {
	if err := b.ours.ready(ctx, 0); err != nil {
		return 0, 0, err
	}
	var s *session
	bytes := 0
	read, err = timed(func() error {
		took, err := timed(func() (err error) {
			s, err = b.ours.create(ctx, obj{"restore_from_environment_id": snapshot})
			return err
		})
		if err != nil {
			return err
		}
		restore = took
		t, err := s.front(ctx)
		if err != nil {
			return err
		}
		defer t.Close()
		return t.evaluate(ctx, readFill, &bytes)
	})
	if err == nil && filled != (bytes > 0) {
		err = fmt.Errorf("the restored cache has an item of %d bytes", bytes)
	}
	if err != nil {
		return 0, 0, err
	}
	_, err = s.end(ctx, "none", false)
	return restore, read, err
}
