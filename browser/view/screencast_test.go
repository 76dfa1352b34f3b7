package view

import (
	"bytes"
	"image"
	"image/jpeg"
	"testing"

	"github.com/chromedp/cdproto/page"
)

// frame returns an event with a picture of a size in pixels.
func frame(t *testing.T, width, height int) page.EventScreencastFrame {
	t.Helper()
	var data bytes.Buffer
	if err := jpeg.Encode(&data, image.NewGray(image.Rect(0, 0, width, height)), nil); err != nil {
		t.Fatal(err)
	}
	return page.EventScreencastFrame{Data: data.Bytes(), SessionID: 1}
}

// While the person gives input, large pictures of before are acknowledged and dropped, also
// one that was held. A small one is sent, whatever its compression.
func TestLargePicturesOfBefore(t *testing.T) {
	b := newBrowser("one")
	c, err := startScreencast(t.Context(), b, "one", false, &quality{known: true})
	if err != nil {
		t.Fatal(err)
	}
	next := func(width, height int) *picture {
		t.Helper()
		p, err := c.next(t.Context(), frame(t, width, height))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for i := range 3 {
		if sent := next(1280, 800) != nil; sent != (i < maxUndrawn) {
			t.Fatalf("picture %d: sent is %t", i, sent)
		}
	}
	if c.held == nil {
		t.Fatal("no picture is held")
	}
	if err := c.useInput(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.held != nil {
		t.Error("a large picture is still held")
	}
	clear(c.sent)
	for range 4 {
		if next(1280, 800) != nil {
			t.Error("a large picture was sent")
		}
	}
	if next(800, 500) == nil {
		t.Error("a small picture was not sent")
	}
	if got := b.count("one-1 " + page.ScreencastFrameAck.Method); got != 8 {
		t.Errorf("%d of 8 pictures are acknowledged", got)
	}
}
