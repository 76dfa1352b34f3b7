package mux

import "sync"

// queue moves values to a channel without ever making the sender wait. What waits
// is bounded in bytes.
type queue[T any] struct {
	out  chan T
	wake chan struct{}
	done chan struct{}
	once sync.Once

	mu       sync.Mutex
	limit    int
	waiting  []sized[T]
	bytes    int // of all that is not in out yet
	finished bool
}

type sized[T any] struct {
	value T
	bytes int
}

func newQueue[T any](limit int) *queue[T] {
	return &queue[T]{limit: limit, out: make(chan T), wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// push adds a value. It is false when that would be too much; a value larger than
// the limit passes when nothing else waits.
func (q *queue[T]) push(v T, bytes int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes > 0 && q.bytes+bytes > q.limit {
		return false
	}
	q.waiting = append(q.waiting, sized[T]{v, bytes})
	q.bytes += bytes
	q.signal()
	return true
}

// finish closes out when the reader has had what came before.
func (q *queue[T]) finish() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.finished = true
	q.signal()
}

func (q *queue[T]) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// stop closes out at once.
func (q *queue[T]) stop() { q.once.Do(func() { close(q.done) }) }

// pump moves the values until finish or stop.
func (q *queue[T]) pump() {
	defer close(q.out)
	for {
		q.mu.Lock()
		batch, finished := q.waiting, q.finished
		q.waiting = nil
		q.mu.Unlock()
		for i, v := range batch {
			batch[i] = sized[T]{} // the reader alone holds it from here on
			select {
			case q.out <- v.value:
			case <-q.done:
				return
			}
			q.mu.Lock()
			q.bytes -= v.bytes
			q.mu.Unlock()
		}
		if len(batch) > 0 {
			continue
		}
		if finished {
			return
		}
		select {
		case <-q.wake:
		case <-q.done:
			return
		}
	}
}
