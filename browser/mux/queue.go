package mux

import "sync"

// queue moves values to a channel and never blocks the sender. The bytes that wait are
// bounded.
type queue[T any] struct {
	out  chan T
	wake chan struct{}
	done chan struct{}
	once sync.Once

	mu       sync.Mutex
	limit    int
	waiting  []sized[T]
	bytes    int // of all values that the reader has not received
	finished bool
}

type sized[T any] struct {
	value T
	bytes int
}

func newQueue[T any](limit int) *queue[T] {
	return &queue[T]{limit: limit, out: make(chan T), wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// push adds a value. It returns false if the queue would become too large. A value larger
// than the limit is accepted if the queue is empty.
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

// finish closes out after the reader has received the queued values.
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

// stop closes out at once, without the queued values.
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
			batch[i] = sized[T]{} // so that only the reader keeps it in memory
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
