package test.momus;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;

/** The clock of a cluster. It moves forward only. */
public final class Clock {
    private final Cluster cluster;

    Clock(Cluster cluster) {
        this.cluster = cluster;
    }

    private void move(String word, Object value) {
        JsonNode answer = cluster.ask("POST", "/clock", Map.of(word, value));
        if (!answer.path("settled").asBoolean(true))
            throw new MomusException("the clock has moved, but not all that became due was done in time", 0, null);
    }

    /** The cluster's time. */
    public Instant now() {
        return Instant.ofEpochMilli(cluster.ask("GET", "/clock", null).path("now_ms").asLong());
    }

    /** Whether it has been told to stand still. */
    public boolean stands() {
        return cluster.ask("GET", "/clock", null).path("stands").asBoolean();
    }

    /** Lets time pass: sessions, transactions and retention expire as they would. Returns when what became due is done. */
    public void advance(Duration by) {
        move("advance_ms", by.toMillis());
    }

    /** Goes to a moment that has not passed, and stands there. */
    public void set(Instant at) {
        move("set", at.toEpochMilli());
    }

    /** Stands still at the present moment. */
    public void freeze() {
        move("freeze", true);
    }

    /** Runs on from here. */
    public void resume() {
        move("resume", true);
    }

    /** Moves no clock: Fetches that wait have waited so much longer. */
    public void passWaits(Duration by) {
        move("pass_waits_ms", by.toMillis());
    }
}
