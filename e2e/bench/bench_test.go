package main

import (
	"context"
	"encoding/xml"
	"io"
	"math"
	"math/rand/v2"
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
			t.Errorf("spread of %v: %+v, want %+v", c.of, got, c.want)
		}
	}
	if got := quantile([]float64{30, 10, 20}, 0.95); got != 29 {
		t.Errorf("95th percentile: %v, want 29", got)
	}
	if q := spread(nil); !math.IsNaN(q.median) || q.String() != "" || q.ratio() != "" {
		t.Errorf("spread of nothing: %+v, want NaN", q)
	}
}

// A slow round has no more weight than the others.
func TestRatiosByRound(t *testing.T) {
	if got := ratios([]float64{1, 100, 2}, []float64{2, 200, 4}); got != (quartiles{0.5, 0.5, 0.5}) {
		t.Errorf("ratios: %+v", got)
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
			t.Errorf("verdict %d: %+v, want %+v", i, v, want)
		}
	}
}

// The introduction counts the missed targets among those that were measured.
func TestSummary(t *testing.T) {
	q := func(median float64) quartiles { return quartiles{median, median, median} }
	got := summary([]verdict{{measured: q(1), most: 2}, {measured: q(3), most: 2}, {measured: q(math.NaN()), most: 2}})
	if want := "missed 1 of 2 targets"; !strings.Contains(got, want) {
		t.Errorf("summary: %q, want %q", got, want)
	}
}

// Every target names measures that exist.
func TestTargetsNameMeasures(t *testing.T) {
	known := map[string]bool{bareOnProfile: true, bareEmpty: true, "cycle/stasis": true, "cycle/puppeteer": true}
	for _, w := range scenarios() {
		known["cdp/"+w.name], known["login/"+w.name] = true, true
	}
	for _, r := range otherTools() {
		known["login/"+r.name] = true
	}
	for _, mode := range modes() {
		known["save/"+mode] = true
	}
	for _, goal := range targets() {
		for _, id := range append(goal.of, goal.to...) {
			if !known[id] && goal.unit == "" {
				t.Errorf("target %q: no measure has the id %s", goal.title, id)
			}
		}
	}
}

func TestMarkdown(t *testing.T) {
	got := section{title: "T", text: "words\n", head: []string{"a", "b"}, rows: [][]string{{"x", "1"}}}.markdown()
	if want := "## T\n\nwords\n\n| a | b |\n|---|---|\n| x | 1 |\n\n"; got != want {
		t.Errorf("markdown: %q", got)
	}
	for n, want := range map[float64]string{0.0421: "0.042", 1.234: "1.23", 12.34: "12.3", 377.4: "377", math.NaN(): "–"} {
		if got := number(n); got != want {
			t.Errorf("number %v: %s, want %s", n, got, want)
		}
	}
}

// The SVG is well-formed with any labels, and its longest line stays inside the picture.
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
			t.Fatalf("not well-formed: %v\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
			rects++
		}
	}
	if rects != 2 {
		t.Errorf("%d bars are drawn", rects)
	}
	if !strings.Contains(svg, `x2="694.0"`) { // the right end of the bars' area
		t.Errorf("the longest spread does not end at the right end of the bars' area:\n%s", svg)
	}
}

// The tree of a process includes the processes it started, and has memory and processor
// time.
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
		t.Errorf("own tree %+v with %d bytes", own, own.pss())
	}
	if below(os.Getpid(), false)[0].pid == os.Getpid() {
		t.Error("the tree without its root includes the root")
	}
	odd, err := parseStat([]byte("7 (a) b (c) S 3 7 7 0 -1 0 0 0 0 0 11 22 0 0 20 0 1 0 1"))
	if err != nil || odd != (process{pid: 7, parent: 3, ticks: 33}) {
		t.Errorf("stat line with an odd name: %+v, %v", odd, err)
	}
	if _, err := parseStat([]byte("7 sleep")); err == nil {
		t.Error("half a stat line was accepted")
	}
}

// A soak is compared with the state before it. More Chromes or folders are a leak, fewer
// are a loss, and memory may grow a little.
func TestLeft(t *testing.T) {
	before := resources{chromes: 1, runs: 1, stored: 2, files: 20, rss: 50 << 20}
	if err := leaks(before, before); err != nil {
		t.Error(err)
	}
	for name, after := range map[string]resources{
		"Chromes": {chromes: 2, runs: 1, stored: 2, files: 20}, "orphan processes": {chromes: 1, orphans: 1, runs: 1, stored: 2},
		"folders": {chromes: 1, stored: 2}, "archives": {chromes: 1, runs: 1, stored: 3},
		"memory": {chromes: 1, runs: 1, stored: 2, rss: 200 << 20}, "sockets": {chromes: 1, runs: 1, stored: 2, files: 90},
	} {
		if err := leaks(before, after); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("left did not report %s alone: %v", name, err)
		}
	}
	if tooMany(0) == nil || tooMany(mostGoroutines+1) == nil || tooMany(20) != nil {
		t.Error("tooMany accepts a wrong number of goroutines, or refuses a right one")
	}
}

// A soak replaces the section of the last soak, and a new measurement keeps it.
func TestSoakStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), pageFile)
	if got, err := soakOf(path); got != "" || err != nil {
		t.Errorf("soak of a missing page: %q, %v", got, err)
	}
	if err := os.WriteFile(path, []byte("# Note\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"first", "second"} {
		if err := replaceSection(path, section{title: soakTitle, text: words}); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if want := "# Note\n\n## " + soakTitle + "\n\nsecond\n\n"; err != nil || string(raw) != want {
		t.Errorf("page after two soaks: %q, %v", raw, err)
	}
	if got, err := soakOf(path); err != nil || got != "## "+soakTitle+"\n\nsecond\n\n" {
		t.Errorf("soak of the page: %q, %v", got, err)
	}
}

// Another section of a page stays where it is.
func TestReplaceSection(t *testing.T) {
	path := filepath.Join(t.TempDir(), guardsFile)
	for _, s := range []section{{title: "A", text: "old"}, {title: "B", text: "stays"}, {title: "A", text: "new"}} {
		if err := replaceSection(path, s); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if want := "## A\n\nnew\n\n## B\n\nstays\n\n"; err != nil || string(raw) != want {
		t.Errorf("the page: %q, %v", raw, err)
	}
}

// A page gets its preface once.
func TestBeginPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), guardsFile)
	if err := replaceSection(path, section{title: "A", text: "x"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := beginPage(path, "# T\n"); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if want := "# T\n\n## A\n\nx\n\n"; err != nil || string(raw) != want {
		t.Errorf("the page: %q, %v", raw, err)
	}
}

// The interval of the ratio of medians holds the true ratio, is narrow if both sides are
// disturbed alike, and is the ratio itself if nothing varies.
func TestBootstrap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pairs := make([][2]float64, 1000)
	for i := range pairs {
		load := 1 + random.Float64()
		pairs[i] = [2]float64{21 * load * (1 + 0.01*random.Float64()), 20 * load * (1 + 0.01*random.Float64())}
	}
	if low, high := bootstrap(pairs, random); low > 1.05 || high < 1.05 || high-low > 0.02 {
		t.Errorf("the interval is %v–%v", low, high)
	}
	if low, high := bootstrap([][2]float64{{3, 2}, {3, 2}}, random); low != 1.5 || high != 1.5 {
		t.Errorf("the interval of equal pairs is %v–%v", low, high)
	}
	if low, _ := bootstrap(nil, random); !math.IsNaN(low) {
		t.Errorf("no pairs have an interval from %v", low)
	}
}

// A row says whether the bound is kept.
func TestRatioRow(t *testing.T) {
	for with, want := range map[float64]string{10.4: "1.05, met", 10.6: "1.05, **missed**"} {
		got := ratioRow("x", [][2]float64{{with, 10}}, rand.New(rand.NewPCG(1, 1)))
		if got[1] != "1" || got[len(got)-1] != want {
			t.Errorf("with %v: %v", with, got)
		}
	}
}

// The number of spares is found among the metrics of the daemon.
func TestSparesForm(t *testing.T) {
	metrics := "# TYPE stasis_chromes_kept gauge\nstasis_chromes_kept{kind=\"parked\"} 7\nstasis_chromes_kept{kind=\"spare\"} 12\nother 1\n"
	if got := sparesForm.FindStringSubmatch(metrics); got == nil || got[1] != "12" {
		t.Errorf("found %v", got)
	}
}

// A measure that took another restore path is repeated a few times. One that failed is
// not.
func TestAgain(t *testing.T) {
	for _, c := range []struct {
		fails []error
		taken int
		bad   bool
	}{
		{nil, 1, false},
		{[]error{errOtherPath, errOtherPath}, 3, false},
		{[]error{io.EOF}, 1, true},
		{[]error{errOtherPath, errOtherPath, errOtherPath, errOtherPath, errOtherPath}, tries, true},
	} {
		taken := 0
		_, err := retryOtherPath(func(context.Context) (map[string]float64, error) {
			taken++
			if taken <= len(c.fails) {
				return nil, c.fails[taken-1]
			}
			return nil, nil
		})(t.Context())
		if taken != c.taken || (err != nil) != c.bad {
			t.Errorf("errors %v: taken %d times, error %v", c.fails, taken, err)
		}
	}
}
