package view

import "time"

// quality chooses the size and the compression of pictures by the time that they take to
// the viewer and back. Its zero value starts with the best pictures.
type quality struct {
	at   int // index in levels
	slow int // pictures in a row that took long
	fast int // pictures in a row that did not
}

// level is one quality of pictures.
type level struct {
	percent int64 // of JPEG
	size    int64 // the most pixels in width and in height
}

// levels are the qualities, the best first. A JPEG of a page of 1280×800 pixels has some
// 100 KB at 80 %, and 15 KB at the last level: 60 ms over 2 Mbit/s.
func levels() []level { return []level{{80, 2560}, {50, 1280}, {30, 1024}, {20, 640}} }

// tooSlow is how long a picture may take until the viewer has drawn it. fastEnough allows a
// better quality.
const (
	tooSlow    = 400 * time.Millisecond
	fastEnough = 150 * time.Millisecond
)

// A few pictures in a row decide, and more of them for a better quality than for a worse
// one, so that the quality does not swing.
const (
	slowInARow = 3
	fastInARow = 40
)

func (q *quality) level() level { return levels()[q.at] }

// measured takes the time of one picture. It reports whether the quality changed.
func (q *quality) measured(took time.Duration) (changed bool) {
	switch {
	case took > tooSlow:
		q.slow, q.fast = q.slow+1, 0
	case took < fastEnough:
		q.slow, q.fast = 0, q.fast+1
	default:
		q.slow, q.fast = 0, 0
	}
	switch {
	case q.slow >= slowInARow && q.at < len(levels())-1:
		q.at++
	case q.fast >= fastInARow && q.at > 0:
		q.at--
	default:
		return false
	}
	q.slow, q.fast = 0, 0
	return true
}
