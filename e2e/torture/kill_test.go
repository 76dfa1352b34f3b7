package torture_test

import (
	"bufio"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stasisd/stasis/snapshot/s3store/s3test"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// A process that is killed at any point leaves everything that it named whole: in the
// catalogue, in the store, and as a default. It loses nothing that it reported as saved.
func TestKilled(t *testing.T) {
	rounds := 15
	if storetest.Torture() {
		rounds = 200
	}
	loop(t, rounds, 400*time.Millisecond, func() places { return places{Dir: t.TempDir()} })
}

func TestKilledBesideABucket(t *testing.T) {
	rounds := 3
	if storetest.Torture() {
		rounds = 40
	}
	server := s3test.Start(t)
	loop(t, rounds, time.Second, func() places {
		o := server.Options(t)
		return places{t.TempDir(), &bucket{o.Endpoint, o.Bucket, o.Prefix, o.Region, o.AccessKey, o.SecretKey}}
	})
}

// loop kills children within a time limit, each on the directory of the one before. Now
// and then it uses a new directory, because a first start may be killed too.
func loop(t *testing.T, rounds int, within time.Duration, fresh func() places) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var all tally
	var known *record
	// Deletes begin late, so there may have been none on a slow machine.
	round := 0
	for ; round < rounds || all.Deleted == 0 && rounds > 10 && round < 3*rounds; round++ {
		if round%25 == 0 {
			if known != nil {
				known.clear(t)
			}
			known = newRecord(fresh())
		}
		events := runAndKill(t, known.places, seed+uint64(round), time.Duration(random.Int64N(int64(within))), round%2 == 1)
		known.take(events)
		all.Saved, all.Deleted = all.Saved+count(events, "saved"), all.Deleted+count(events, "deleting")
		all.add(known.examine(t))
		if t.Failed() {
			t.Fatalf("the examination after kill %d failed", round+1)
		}
	}
	known.clear(t)
	t.Logf("%d kills: %+v", round, all)
	if all.Saved == 0 || all.Deleted == 0 && rounds > 10 {
		t.Errorf("the children saved and deleted too little: %+v", all)
	}
}

func count(events []event, did string) (n int) {
	for _, e := range events {
		if e.Did == did {
			n++
		}
	}
	return n
}

// runAndKill runs a child on the directory and kills it after a while, counted from its
// start or from its first save. It returns the child's events.
func runAndKill(t *testing.T, in places, seed uint64, after time.Duration, saved bool) []event {
	t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childPlaces+"="+string(raw), childSeed+"="+strconv.FormatUint(seed, 10))
	child.Stderr = t.Output()
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() { time.AfterFunc(after, func() { _ = child.Process.Kill() }) } // Wait reports whether the kill ended it
	if !saved {
		kill()
	}
	var events []event
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break // the last line was cut off by the kill
		}
		var e event
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			t.Fatal(err)
		}
		if events = append(events, e); saved && len(events) == 1 {
			kill()
		}
	}
	if err := child.Wait(); err == nil || child.ProcessState.Exited() {
		t.Fatalf("the child ended before it was killed: %v", err)
	}
	return events
}
