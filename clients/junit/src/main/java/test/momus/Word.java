package test.momus;

import java.util.List;
import java.util.Map;

/**
 * A filter or trigger of a fault, or a filter of requests in the journal. All filters that are given must fit; names may hold
 * *, ? and [...]. Import them: {@code import static test.momus.Word.*}.
 */
public interface Word {
    /** Says it. */
    void into(Map<String, Object> words);

    private static Word of(String name, Object value) {
        return words -> words.put(name, value);
    }

    /** The fault acts on the first request that matches. Without a trigger it acts on every one. */
    static Word once() {
        return of("trigger", "once");
    }

    /** The fault acts on every request that matches. */
    static Word everyTime() {
        return of("trigger", "every_time");
    }

    /** The fault acts on the nth request that matches, counted from 1. */
    static Word onCall(int n) {
        return of("trigger", Map.of("on_call", n));
    }

    /** The fault acts on the first n requests that match. */
    static Word times(int n) {
        return of("trigger", Map.of("times", n));
    }

    /** The fault acts on each request with this probability; the same seed acts on the same ones. */
    static Word probability(double p, long seed) {
        return of("trigger", Map.of("with_probability", p, "seed", seed));
    }

    /** A kind of requests, such as OffsetCommit. */
    static Word api(String name) {
        return of("api", name);
    }

    /** Several kinds of requests, for a fault. */
    static Word apis(String... names) {
        return of("api", List.of(names));
    }

    /** Versions of the API, from first to last, for a fault. */
    static Word versions(int first, int last) {
        return of("version", List.of(first, last));
    }

    /** What a client calls itself. */
    static Word clientId(String name) {
        return of("client_id", name);
    }

    /** Who has authenticated, as User:alice. */
    static Word principal(String name) {
        return of("principal", name);
    }

    /** The HOST:PORT of a client. */
    static Word connection(String address) {
        return of("connection", address);
    }

    /** The name of a listener, for a fault. */
    static Word listener(String name) {
        return of("listener", name);
    }

    /** The number of a virtual broker, for a fault. */
    static Word onBroker(int id) {
        return of("broker", id);
    }

    /** A topic that the request names. */
    static Word topic(String name) {
        return of("topic", name);
    }

    /** A partition that the request names together with its topic, for a fault. */
    static Word partition(int number) {
        return of("partition", number);
    }

    /** A group that the request names. */
    static Word group(String name) {
        return of("group", name);
    }

    /** A transactional id that the request names. */
    static Word transactionalId(String name) {
        return of("transactional_id", name);
    }

    /** An error with which requests in the journal were answered. */
    static Word error(String name) {
        return of("error", name);
    }

    /** The fault meets the request before it takes effect. */
    static Word before() {
        return of("when", "before");
    }

    /** The fault meets the reply: what the request does is done. Most faults do so unless told otherwise. */
    static Word after() {
        return of("when", "after");
    }

    /** disconnectOn cuts the reply in its middle. */
    static Word middle() {
        return of("when", "middle");
    }

    /** A kind of requests of the schema registry, such as RegisterSchema. */
    static Word route(String name) {
        return of("route", name);
    }

    /** A subject of the schema registry. */
    static Word subject(String name) {
        return of("subject", name);
    }

    /** A name of your own for a fault. */
    static Word named(String name) {
        return of("name", name);
    }

    /** Any other field of a fault (docs/faults.md): at, free_bytes, status, code, ms. */
    static Word field(String name, Object value) {
        return of(name, value);
    }
}
