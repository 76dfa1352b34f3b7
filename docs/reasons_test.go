package docs_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The codes of reasons are those in openapi.yaml, in the same order.
func TestReasonCodesAreDocumented(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	lists := regexp.MustCompile(`(?s)reason_code:\n.*?enum: \[(.*?)\]`).FindAllStringSubmatch(read("../openapi.yaml"), -1)
	if len(lists) != 2 {
		t.Fatalf("%d lists of codes", len(lists))
	}
	for i, source := range []string{"../profiles/reason.go", "../state/report/reason.go"} {
		var codes []string
		for _, found := range regexp.MustCompile(`(?m)^\t\w+ +(?:Reason)?Code = "(\w+)" +// .+$`).FindAllStringSubmatch(read(source), -1) {
			codes = append(codes, found[1])
		}
		if documented := strings.Split(lists[i][1], ", "); len(codes) < 10 || !slices.Equal(codes, documented) {
			t.Errorf("%s has %q, openapi.yaml has %q", source, codes, documented)
		}
	}
}
