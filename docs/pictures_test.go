package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// mostPicture is how many bytes a picture may have, so that pages load fast.
const mostPicture = 80 << 10

// Every picture that a document shows exists, says in words what it shows, and is small. Every
// picture of make pictures is shown.
func TestPictures(t *testing.T) {
	shown := map[string]bool{}
	for _, file := range documents(t) {
		for _, image := range regexp.MustCompile(`!\[([^\]]*)\]\(([^)\s]+)\)`).FindAllStringSubmatch(prose(t, file), -1) {
			path := filepath.Join(filepath.Dir(file), image[2])
			shown[path] = true
			info, err := os.Stat(path)
			switch {
			case err != nil:
				t.Errorf("%s: the picture %s does not exist", file, image[2])
			case info.Size() > mostPicture:
				t.Errorf("%s: the picture %s has %d bytes, more than %d", file, image[2], info.Size(), mostPicture)
			case len(image[1]) < 10:
				t.Errorf("%s: the picture %s has no description", file, image[2])
			}
		}
	}
	made, err := filepath.Glob("../docs/pictures/*")
	if err != nil || len(made) == 0 {
		t.Fatalf("no pictures: %v", err)
	}
	for _, path := range made {
		if !shown[path] {
			t.Errorf("no document shows %s", path)
		}
	}
}
