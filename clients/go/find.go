package momus

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Find says how momus is started: by the words of MOMUS_COMMAND; else by the momus of the cache folder, if its checksum is
// right; else by the momus on the PATH. The cache folder is MOMUS_CACHE, or momus in the user's cache folder; Install puts
// a momus there.
func Find() ([]string, error) {
	if told := os.Getenv("MOMUS_COMMAND"); told != "" {
		if info, err := os.Stat(told); err == nil && !info.IsDir() {
			return []string{told}, nil // a path with blanks
		}
		return strings.Fields(told), nil
	}
	cached, err := cachedProgram()
	if err != nil {
		return nil, err
	}
	if cached != "" {
		return []string{cached}, nil
	}
	if found, err := exec.LookPath("momus"); err == nil {
		return []string{found}, nil
	}
	folder, _ := cacheFolder()
	return nil, fmt.Errorf("momus: there is no momus: set MOMUS_COMMAND to how it is started, or put it on the PATH (its wheel, installed by pip), or "+
		"unpack %s into %s by `go run %s/install FILE`", archiveName(), folder, modulePath)
}

const modulePath = "momus.test/momus" // of go.mod

// archiveName is what the archive of the binary for this machine is called.
func archiveName() string {
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	if machine == "" {
		machine = runtime.GOARCH
	}
	return fmt.Sprintf("momus-%s-%s-%s", Version, runtime.GOOS, machine)
}

func cacheFolder() (string, error) {
	if told := os.Getenv("MOMUS_CACHE"); told != "" {
		return told, nil
	}
	base, err := os.UserCacheDir()
	return filepath.Join(base, "momus"), err
}

// cachedProgram is the momus of this version in the cache folder; empty: there is none. It is an error if its program is
// not the one that was installed.
func cachedProgram() (string, error) {
	folder, err := cacheFolder()
	if err != nil {
		return "", nil // no home, no cache
	}
	at := filepath.Join(folder, archiveName())
	wanted, err := os.ReadFile(filepath.Join(at, "momus.sha256"))
	if err != nil {
		return "", nil
	}
	program := filepath.Join(at, "momus")
	data, err := os.ReadFile(program)
	if err != nil {
		return "", fmt.Errorf("momus: %s is not whole: remove it, and install it again: %w", at, err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != strings.TrimSpace(string(wanted)) {
		return "", fmt.Errorf("momus: the checksum of %s is wrong: remove %s, and install it again", program, at)
	}
	return program, nil
}
