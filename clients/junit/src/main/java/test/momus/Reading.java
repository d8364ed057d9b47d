package test.momus;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/** What is read of a topic: {@code Reading.all().committed().within(Duration.ofSeconds(30))}. */
public final class Reading {
    final Map<String, Object> body = new LinkedHashMap<>();
    Duration within = Duration.ofSeconds(10);

    private Reading() {}

    /** All of the topic; waits for ten seconds. */
    public static Reading all() {
        return new Reading();
    }

    /** Only this partition, from an offset on. */
    public Reading partition(int partition, long offset) {
        body.put("partition", partition);
        body.put("offset", offset);
        return this;
    }

    /** Only records with this key: a text or bytes. */
    public Reading key(Object key) {
        body.put("key", Message.encoded(key));
        return this;
    }

    /** Leaves out what open and aborted transactions have written. */
    public Reading committed() {
        body.put("isolation", "committed");
        return this;
    }

    /** How long records are waited for. */
    public Reading within(Duration time) {
        within = time;
        return this;
    }
}
