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

	"github.com/stasisd/stasis/snapshot/storetest"
)

// A process that is killed at any point of what it does leaves everything that
// it named whole: in the catalogue, in the store, and as a default; and loses
// nothing that it said was saved.
func TestKilled(t *testing.T) {
	rounds, fresh := 20, 10
	if storetest.Torture() {
		rounds, fresh = 200, 25
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var all tally
	var known *record
	for round := range rounds {
		if round%fresh == 0 { // a first start may be killed too
			known = newRecord(t.TempDir())
		}
		told := killed(t, known.dir, seed+uint64(round), time.Duration(random.Int64N(int64(400*time.Millisecond))))
		known.take(told)
		all.add(known.examine(t))
		if t.Failed() {
			t.Fatalf("after %d kills", round+1)
		}
	}
	t.Logf("%d kills: %+v", rounds, all)
	if all.Saved == 0 || all.Deleted == 0 {
		t.Errorf("the children did nothing: %+v", all)
	}
}

// killed runs a child on the directory, kills it after a while, and returns
// what it said.
func killed(t *testing.T, dir string, seed uint64, after time.Duration) []event {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+dir, childSeed+"="+strconv.FormatUint(seed, 10))
	child.Stderr = t.Output()
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(after, func() { _ = child.Process.Kill() }) // Wait tells whether it was
	defer kill.Stop()
	var told []event
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break // a line that was cut was not said
		}
		var e event
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, e)
	}
	if err := child.Wait(); err == nil || child.ProcessState.Exited() {
		t.Fatalf("the child ended by itself: %v", err)
	}
	return told
}
