package test.momus;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** Users, ACLs and certificates of a cluster that was made with security. */
public final class Security {
    private final Cluster cluster;

    Security(Cluster cluster) {
        this.cluster = cluster;
    }

    /** Adds a user, or gives it another password; with mtls it gets a certificate. */
    public void addUser(String name, String password) {
        cluster.ask("POST", "/users", Map.of("name", name, "password", password));
    }

    /** Removes a user. Its connections stay. */
    public void removeUser(String name) {
        cluster.ask("DELETE", "/users" + Control.part(name), null);
    }

    /** The names of the users. */
    public List<String> users() {
        List<String> found = new ArrayList<>();
        cluster.ask("GET", "/users", null).path("users").forEach(each -> found.add(each.asText()));
        return found;
    }

    /** Name to password, of users that were named or added here. */
    public Map<String, String> passwords() {
        Map<String, String> found = new LinkedHashMap<>();
        cluster.ask("GET", "/users", null).path("passwords").fields().forEachRemaining(each -> found.put(each.getKey(), each.getValue().asText()));
        return found;
    }

    /** Allows a user operations on a topic, group, transactional_id or cluster, in the words of kafka-acls. */
    public void allow(String user, String resource, String name, String... operations) {
        acls("allow", user, resource, name, operations);
    }

    /** Denies a user operations, whatever is allowed. */
    public void deny(String user, String resource, String name, String... operations) {
        acls("deny", user, resource, name, operations);
    }

    private void acls(String permission, String user, String resource, String name, String... operations) {
        cluster.ask("POST", "/acls", Map.of("acls", Stream.of(operations).map(operation -> Map.of("principal", principal(user),
            "operation", operation, "resource", resource, "name", name, "permission", permission)).toList()));
    }

    /** All ACLs. */
    public List<Acl> acls() {
        return Control.rows(cluster.ask("GET", "/acls", null), Acl.class);
    }

    /** Removes the ACLs of a user; null: all. Returns how many. */
    public int removeAcls(String user) {
        String query = user == null ? "" : "?principal=" + Control.query(principal(user));
        return cluster.ask("DELETE", "/acls" + query, null).path("removed").asInt();
    }

    private static String principal(String user) {
        return user.contains(":") ? user : "User:" + user;
    }

    private void change(Map<String, ?> body) {
        cluster.ask("POST", "/certificates", body);
    }

    /** Shows a certificate that expired yesterday: that of the broker ("server"), or of a user. */
    public void expireCertificate(String name) {
        change(Map.of("action", "expire", "name", name));
    }

    /** Makes a good certificate, for these hosts if any are named. */
    public void issueCertificate(String name, String... hosts) {
        change(Map.of("action", "issue", "name", name, "hosts", List.of(hosts)));
    }

    /** Makes all certificates again. */
    public void rotateCertificates() {
        change(Map.of("action", "rotate"));
    }

    /** Makes all certificates again, by an authority that no client trusts yet. */
    public void rotateAuthority() {
        change(Map.of("action", "rotate-authority"));
    }
}
