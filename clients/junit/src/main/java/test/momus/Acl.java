package test.momus;

/** One ACL, in the words of kafka-acls: permission is allow or deny, pattern literal or prefixed. */
public record Acl(String principal, String host, String operation, String resource, String name, String pattern, String permission) {}
