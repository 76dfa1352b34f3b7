package main

import (
	"context"
	"encoding/xml"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want quartiles
	}{
		{[]float64{7}, quartiles{7, 7, 7}},
		{[]float64{4, 1, 3, 2}, quartiles{1.75, 2.5, 3.25}},
		{[]float64{5, 1, 2, 4, 3}, quartiles{2, 3, 4}},
	} {
		if got := spread(c.of); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.of, got, c.want)
		}
	}
	if q := spread(nil); !math.IsNaN(q.median) || q.String() != "" || q.ratio() != "" {
		t.Errorf("of nothing: %+v", q)
	}
}

// A round in which all was slow weighs no more than another.
func TestRatiosByRound(t *testing.T) {
	if got := ratios([]float64{1, 100, 2}, []float64{2, 200, 4}); got != (quartiles{0.5, 0.5, 0.5}) {
		t.Errorf("%+v", got)
	}
}

func TestJudge(t *testing.T) {
	all := []target{
		{title: "a", of: []string{"x", "none"}, to: []string{"slow", "absent", "fast"}, most: 0.5},
		{title: "b", of: []string{"size", "unseen"}, most: 100, unit: "KB"},
	}
	got := judge(all, times{"x": {4, 4}, "slow": {20, 20}, "fast": {5, 10}},
		map[string]quartiles{"size": {100, 100, 100}})
	for i, want := range []struct {
		against      string
		median       float64
		met, missing bool
	}{
		{"fast", 0.6, false, false}, {"fast", 0, false, true}, {"KB", 100, true, false}, {"KB", 0, false, true},
	} {
		v := got[i]
		if v.against != want.against || v.met() != want.met || v.missing() != want.missing ||
			!want.missing && math.Abs(v.measured.median-want.median) > 1e-9 {
			t.Errorf("%d: %+v, want %+v", i, v, want)
		}
	}
}

// Every target names measures that there are.
func TestTargetsNameMeasures(t *testing.T) {
	known := map[string]bool{bareOnProfile: true, bareEmpty: true, "cycle/stasis": true, "cycle/puppeteer": true}
	for _, w := range ways() {
		known["cdp/"+w.name], known["login/"+w.name] = true, true
	}
	for _, r := range rivals() {
		known["login/"+r.name] = true
	}
	for _, mode := range modes() {
		known["save/"+mode] = true
	}
	for _, goal := range targets() {
		for _, id := range append(goal.of, goal.to...) {
			if !known[id] && goal.unit == "" {
				t.Errorf("%s: %s is not measured", goal.title, id)
			}
		}
	}
}

func TestMarkdown(t *testing.T) {
	got := section{title: "T", text: "words\n", head: []string{"a", "b"}, rows: [][]string{{"x", "1"}}}.markdown()
	if want := "## T\n\nwords\n\n| a | b |\n|---|---|\n| x | 1 |\n\n"; got != want {
		t.Errorf("%q", got)
	}
	for n, want := range map[float64]string{0.0421: "0.042", 1.234: "1.23", 12.34: "12.3", 377.4: "377", math.NaN(): "–"} {
		if got := number(n); got != want {
			t.Errorf("%v: %s, want %s", n, got, want)
		}
	}
}

// The picture is well-formed, whatever its labels hold, and its longest line
// stays inside.
func TestPicture(t *testing.T) {
	svg := picture{[]chart{{"A < B", []bar{{"x & y", true, quartiles{90, 100, 120}}, {"none", false, quartiles{}}}}}}.svg()
	in := xml.NewDecoder(strings.NewReader(svg))
	var rects int
	for {
		token, err := in.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
			rects++
		}
	}
	if rects != 2 {
		t.Errorf("%d bars", rects)
	}
	if !strings.Contains(svg, `x2="694.0"`) { // all of the room that bars have
		t.Errorf("the spread does not end where the room does:\n%s", svg)
	}
}

// A process is known with what it started, and takes memory and time.
func TestTree(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	own := ownTree()
	var self, child bool
	for _, p := range own {
		self = self || p.pid == os.Getpid()
		child = child || p.pid == cmd.Process.Pid
	}
	if !self || !child || own.pss() <= 0 {
		t.Errorf("%+v, %d bytes", own, own.pss())
	}
	if below(os.Getpid(), false)[0].pid == os.Getpid() {
		t.Error("a tree without its root has it")
	}
	odd, err := parseStat([]byte("7 (a) b (c) S 3 7 7 0 -1 0 0 0 0 0 11 22 0 0 20 0 1 0 1"))
	if err != nil || odd != (process{pid: 7, parent: 3, ticks: 33}) {
		t.Errorf("%+v, %v", odd, err)
	}
	if _, err := parseStat([]byte("7 sleep")); err == nil {
		t.Error("half a line is taken")
	}
}

// A soak is held to what there was before: more Chromes or folders are a leak,
// fewer are a loss, and a heap may grow a little.
func TestLeft(t *testing.T) {
	before := held{chromes: 1, runs: 1, stored: 2, files: 20, rss: 50 << 20}
	if err := left(before, before); err != nil {
		t.Error(err)
	}
	for name, after := range map[string]held{
		"Chromes": {chromes: 2, runs: 1, stored: 2, files: 20}, "nobody owns": {chromes: 1, strays: 1, runs: 1, stored: 2},
		"folders": {chromes: 1, stored: 2}, "archives": {chromes: 1, runs: 1, stored: 3},
		"memory": {chromes: 1, runs: 1, stored: 2, rss: 200 << 20}, "sockets": {chromes: 1, runs: 1, stored: 2, files: 90},
	} {
		if err := left(before, after); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if tooMany(0) == nil || tooMany(mostGoroutines+1) == nil || tooMany(20) != nil {
		t.Error("goroutines are not counted")
	}
}

// A soak replaces the one before, and measuring anew keeps it.
func TestSoakStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), noteFile)
	if got, err := soakOf(path); got != "" || err != nil {
		t.Errorf("without a note: %q, %v", got, err)
	}
	if err := os.WriteFile(path, []byte("# Note\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"first", "second"} {
		if err := keepSoak(path, section{title: soakTitle, text: words}); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if want := "# Note\n\n## " + soakTitle + "\n\nsecond\n\n"; err != nil || string(raw) != want {
		t.Errorf("%q, %v", raw, err)
	}
	if got, err := soakOf(path); err != nil || got != "## "+soakTitle+"\n\nsecond\n\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// What came another way is taken again, for a while; what failed is not.
func TestAgain(t *testing.T) {
	for _, c := range []struct {
		fails []error
		taken int
		bad   bool
	}{
		{nil, 1, false},
		{[]error{errOtherWay, errOtherWay}, 3, false},
		{[]error{io.EOF}, 1, true},
		{[]error{errOtherWay, errOtherWay, errOtherWay, errOtherWay, errOtherWay}, tries, true},
	} {
		taken := 0
		_, err := again(func(context.Context) (map[string]float64, error) {
			taken++
			if taken <= len(c.fails) {
				return nil, c.fails[taken-1]
			}
			return nil, nil
		})(t.Context())
		if taken != c.taken || (err != nil) != c.bad {
			t.Errorf("%v: taken %d times, %v", c.fails, taken, err)
		}
	}
}
