package momus

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Users are those of a cluster that was made with security.
type Users struct{ c *Cluster }

type users struct {
	Users     []string          `json:"users"`
	Passwords map[string]string `json:"passwords"`
}

// Add adds a user, or gives it another password; with mtls it gets a certificate.
func (u *Users) Add(name, password string) {
	u.c.tb.Helper()
	u.c.ask("POST", "/users", map[string]any{"name": name, "password": password}, nil)
}

// Remove removes a user. Its connections stay.
func (u *Users) Remove(name string) {
	u.c.tb.Helper()
	u.c.ask("DELETE", "/users"+segment(name), nil, nil)
}

// List has their names.
func (u *Users) List() []string {
	u.c.tb.Helper()
	found := users{}
	u.c.ask("GET", "/users", nil, &found)
	return found.Users
}

// Passwords are those of users that were named or added here.
func (u *Users) Passwords() map[string]string {
	u.c.tb.Helper()
	found := users{}
	u.c.ask("GET", "/users", nil, &found)
	return found.Passwords
}

// Acls are those of a cluster with an authorizer, in the words of kafka-acls.
type Acls struct{ c *Cluster }

// ACL is one of them. Principal is User:alice; empty Pattern, Permission and Host are literal, allow and *.
type ACL struct {
	Principal  string `json:"principal"`
	Operation  string `json:"operation"`
	Resource   string `json:"resource"`
	Name       string `json:"name"`
	Pattern    string `json:"pattern,omitempty"`
	Permission string `json:"permission,omitempty"`
	Host       string `json:"host,omitempty"`
}

// Add makes ACLs.
func (a *Acls) Add(acls ...ACL) {
	a.c.tb.Helper()
	a.c.ask("POST", "/acls", map[string]any{"acls": acls}, nil)
}

// Allow allows a user operations on a topic, group, transactional_id or cluster.
func (a *Acls) Allow(user, resource, name string, operations ...string) {
	a.c.tb.Helper()
	a.each("allow", user, resource, name, operations)
}

// Deny denies a user operations, whatever is allowed.
func (a *Acls) Deny(user, resource, name string, operations ...string) {
	a.c.tb.Helper()
	a.each("deny", user, resource, name, operations)
}

func (a *Acls) each(permission, user, resource, name string, operations []string) {
	a.c.tb.Helper()
	acls := make([]ACL, len(operations))
	for i, operation := range operations {
		acls[i] = ACL{Principal: principal(user), Operation: operation, Resource: resource, Name: name, Permission: permission}
	}
	a.Add(acls...)
}

// List has all of them.
func (a *Acls) List() []ACL {
	a.c.tb.Helper()
	found := []ACL{}
	a.c.ask("GET", "/acls", nil, &found)
	return found
}

// Remove removes those of a user, or all, and returns how many.
func (a *Acls) Remove(user ...string) int {
	a.c.tb.Helper()
	query := ""
	for _, each := range user {
		query = "?" + url.Values{"principal": {principal(each)}}.Encode()
	}
	answer := struct {
		Removed int `json:"removed"`
	}{}
	a.c.ask("DELETE", "/acls"+query, nil, &answer)
	return answer.Removed
}

func principal(user string) string {
	if strings.Contains(user, ":") {
		return user
	}
	return "User:" + user
}

// Certificates are those of a cluster that was made with them: "server", or a user's name. New connections meet what is
// changed.
type Certificates struct{ c *Cluster }

func (k *Certificates) change(body map[string]any) {
	k.c.tb.Helper()
	k.c.ask("POST", "/certificates", body, nil)
}

// Expire shows a certificate that expired yesterday.
func (k *Certificates) Expire(name string) {
	k.c.tb.Helper()
	k.change(map[string]any{"action": "expire", "name": name})
}

// Issue makes a good one, for these hosts if any are named.
func (k *Certificates) Issue(name string, hosts ...string) {
	k.c.tb.Helper()
	k.change(map[string]any{"action": "issue", "name": name, "hosts": append([]string{}, hosts...)})
}

// Rotate makes all again.
func (k *Certificates) Rotate() { k.c.tb.Helper(); k.change(map[string]any{"action": "rotate"}) }

// RotateAuthority makes all again, by an authority that no client trusts yet.
func (k *Certificates) RotateAuthority() {
	k.c.tb.Helper()
	k.change(map[string]any{"action": "rotate-authority"})
}

// ClientSettings are those by which a client connects as a user (the first one if none is named), in the words of java,
// confluent, franz-go, kafkajs and others. Files that they name are in a folder that goes with the cluster.
func (c *Cluster) ClientSettings(client string, user ...string) map[string]string {
	c.tb.Helper()
	query := url.Values{"client": {client}}
	for _, each := range user {
		query.Set("user", each)
	}
	answer := struct {
		Settings map[string]string `json:"settings"`
		Files    map[string][]byte `json:"files"`
	}{}
	c.ask("GET", "/security?"+query.Encode(), nil, &answer)
	if len(answer.Files) > 0 {
		folder, err := c.folders.make(answer.Files)
		if err != nil {
			c.tb.Fatalf("momus: %v", err)
		}
		for name, value := range answer.Settings {
			answer.Settings[name] = strings.ReplaceAll(value, "{folder}", folder)
		}
	}
	return answer.Settings
}

// folders are those of clients' files, which only their owner can read.
type folders struct {
	lock sync.Mutex
	made []string
}

func (f *folders) make(files map[string][]byte) (string, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	folder, err := os.MkdirTemp("", "momus-client-")
	if err != nil {
		return "", err
	}
	f.made = append(f.made, folder)
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(name)), data, 0o600); err != nil {
			return "", err
		}
	}
	return folder, nil
}

func (f *folders) remove() {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, each := range f.made {
		os.RemoveAll(each)
	}
	f.made = nil
}
