package console

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/stasisd/stasis/client"
)

// daemonPage is what the page of the daemon shows.
type daemonPage struct {
	Ready    bool
	Problem  *client.Error // why it is not ready
	Landlock struct {
		Enforced bool
		ABI      int
	}
	Metrics []metric
	Pruned  *pruned // what a prune would remove, if that was asked
}

// metric is a line of the metrics, with what it means.
type metric struct{ Name, Value, Help string }

type pruned struct {
	RemovedCount int64            `json:"removed_count"`
	FreedBytes   int64            `json:"freed_bytes"`
	KeptCount    int64            `json:"kept_count"`
	KeptBy       map[string]int64 `json:"kept_by"`
	DryRun       bool             `json:"dry_run"`
	Kept         []struct {
		SizeBytes int64 `json:"size_bytes"`
	} `json:"kept"`
}

// KeptBytes returns the size of the snapshots that stay. Those that share an archive count
// more than once.
func (p pruned) KeptBytes() int64 {
	var sum int64
	for _, s := range p.Kept {
		sum += s.SizeBytes
	}
	return sum
}

func showDaemon(v *visit) error { return daemonWith(v, nil) }

// daemonWith shows the page of the daemon, with the result of a prune.
func daemonWith(v *visit, p *pruned) error {
	data := daemonPage{Pruned: p}
	var ready struct {
		Status   string
		Landlock struct {
			Enforced bool
			ABI      int
		}
	}
	_, err := v.api.get("/readyz", &ready)
	if failed, ok := err.(*client.Error); ok { //nolint:errorlint // send returns it unwrapped
		data.Problem = failed
	} else if err != nil {
		return err
	}
	data.Ready, data.Landlock = err == nil, ready.Landlock
	text, err := v.api.text("/metrics")
	if err == nil { // a daemon may have no metrics
		data.Metrics = parseMetrics(text)
	}
	return v.render("daemon", page{Title: "Daemon", Section: "daemon", Data: data, Actions: []action{
		{Label: "What a prune would remove", Call: call{method: http.MethodPost, path: "/v1/prune", body: `{"all": true, "dry_run": true}`}},
	}})
}

// parseMetrics returns Stasis's own metrics and the memory of the process, from Prometheus's
// text format.
func parseMetrics(text string) []metric {
	var list []metric
	help := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if about, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, meaning, _ := strings.Cut(about, " ")
			help[name] = meaning
			continue
		}
		space := strings.LastIndex(line, " ")
		if space < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		name, value := line[:space], line[space+1:]
		plain, _, _ := strings.Cut(name, "{")
		if !strings.HasPrefix(plain, "stasis_") && plain != "process_resident_memory_bytes" && plain != "process_open_fds" {
			continue
		}
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			value = strconv.FormatFloat(n, 'f', -1, 64)
			if strings.HasSuffix(plain, "_bytes") {
				value = size(int64(n))
			}
		}
		list = append(list, metric{Name: name, Value: value, Help: help[plain]})
		help[plain] = "" // once is enough
	}
	return list
}

// prune removes the snapshots that no policy keeps, or says which these are.
func prune(v *visit) error {
	form, err := v.form()
	if err != nil {
		return err
	}
	var p pruned
	if _, err := v.api.send(http.MethodPost, "/v1/prune", map[string]any{"all": true, "dry_run": form.Get("now") == ""}, &p); err != nil {
		return err
	}
	return daemonWith(v, &p)
}
