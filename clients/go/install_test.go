package momus

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func archive(t *testing.T, folder string, files map[string]string) string {
	t.Helper()
	data := &bytes.Buffer{}
	packed := gzip.NewWriter(data)
	entries := tar.NewWriter(packed)
	for name, text := range files {
		entries.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(text))})
		entries.Write([]byte(text))
	}
	entries.Close()
	packed.Close()
	path := filepath.Join(folder, archiveName()+".tar.gz")
	if err := os.WriteFile(path, data.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	sum, _ := sumOf(path)
	os.WriteFile(path+".sha256", []byte(fmt.Sprintf("%s  %s\n", sum, filepath.Base(path))), 0o644)
	return path
}

func TestBinaryIsInstalledByItsChecksumAndFoundThen(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "a cache")
	t.Setenv("MOMUS_CACHE", cache)
	t.Setenv("MOMUS_COMMAND", "")
	t.Setenv("PATH", t.TempDir())
	if _, err := Find(); err == nil || !strings.Contains(err.Error(), "there is no momus: set MOMUS_COMMAND") {
		t.Fatal(err)
	}
	from := archive(t, t.TempDir(), map[string]string{archiveName() + "/momus": "a program"})
	program, err := Install(from)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := Find(); err != nil || len(found) != 1 || found[0] != program {
		t.Fatal(found, err)
	}
	if again, err := Install(from); err != nil || again != program {
		t.Fatal(again, err)
	}
	os.WriteFile(program, []byte("another"), 0o755)
	if _, err := Find(); err == nil || !strings.Contains(err.Error(), "the checksum of") {
		t.Fatal(err)
	}
	if _, err := Install(from); err != nil {
		t.Fatal(err)
	}
	if found, err := Find(); err != nil || found[0] != program {
		t.Fatal(found, err)
	}
}

func TestArchiveThatIsNotWholeOrLeavesItsFolderIsRefused(t *testing.T) {
	t.Setenv("MOMUS_CACHE", t.TempDir())
	outside := archive(t, t.TempDir(), map[string]string{"../evil": "x"})
	if _, err := Install(outside); err == nil || !strings.Contains(err.Error(), "outside of itself") {
		t.Fatal(err)
	}
	os.WriteFile(outside, []byte("cut"), 0o644)
	if _, err := Install(outside); err == nil || !strings.Contains(err.Error(), "fetch it again") {
		t.Fatal(err)
	}
	os.Remove(outside + ".sha256")
	if _, err := Install(outside); err == nil || !strings.Contains(err.Error(), "not beside it") {
		t.Fatal(err)
	}
}
