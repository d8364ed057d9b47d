package momus

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Install unpacks an archive of the binary into the cache folder, after its checksum, in the file beside it with .sha256 at
// the end of its name, was found right. It returns the path of the program. One that is there already stays.
func Install(archive string) (string, error) {
	stated, err := os.ReadFile(archive + ".sha256")
	if err != nil {
		return "", fmt.Errorf("momus: the checksum of the archive is not beside it: %w", err)
	}
	wanted, _, _ := strings.Cut(strings.TrimSpace(string(stated)), " ")
	found, err := sumOf(archive)
	if err != nil {
		return "", err
	}
	if found != wanted {
		return "", fmt.Errorf("momus: the checksum of %s is %s, and should be %s: fetch it again", archive, found, wanted)
	}
	folder, err := cacheFolder()
	if err != nil {
		return "", fmt.Errorf("momus: there is no cache folder: set MOMUS_CACHE: %w", err)
	}
	name := archiveName()
	if !strings.HasPrefix(filepath.Base(archive), name) {
		return "", fmt.Errorf("momus: %s is not for this machine and kit, which take %s.tar.gz", archive, name)
	}
	if program, err := cachedProgram(); err == nil && program != "" {
		return program, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(folder, ".new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	if err := unpack(archive, fresh); err != nil {
		return "", fmt.Errorf("momus: %s: %w", archive, err)
	}
	made := filepath.Join(fresh, name)
	sum, err := sumOf(filepath.Join(made, "momus"))
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(made, "momus.sha256"), []byte(sum+"\n"), 0o644); err != nil {
		return "", err
	}
	at := filepath.Join(folder, name)
	os.RemoveAll(at) // one that was not whole
	if err := os.Rename(made, at); err != nil {
		if program, _ := cachedProgram(); program != "" {
			return program, nil // another run was faster
		}
		return "", err
	}
	return filepath.Join(at, "momus"), nil
}

func sumOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	return hex.EncodeToString(sum.Sum(nil)), err
}

func unpack(archive, folder string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	for entries := tar.NewReader(plain); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(entry.Name) {
			return fmt.Errorf("it has a file outside of itself: %s", entry.Name)
		}
		if err := write(filepath.Join(folder, entry.Name), entry, entries); err != nil {
			return err
		}
	}
}

func write(path string, entry *tar.Header, data io.Reader) error {
	switch entry.Typeflag {
	case tar.TypeDir:
		return os.MkdirAll(path, 0o755)
	case tar.TypeSymlink:
		if filepath.IsAbs(entry.Linkname) || strings.Contains(entry.Linkname, "..") {
			return fmt.Errorf("it has a link to outside of itself: %s", entry.Name)
		}
		return os.Symlink(entry.Linkname, path)
	case tar.TypeReg:
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, entry.FileInfo().Mode().Perm())
		if err != nil {
			return err
		}
		_, err = io.Copy(file, data)
		return errors.Join(err, file.Close())
	}
	return fmt.Errorf("it has something that is no file: %s", entry.Name)
}
