package test.momus;

import java.util.LinkedHashMap;
import java.util.Map;

/** How often requests are to come. */
public final class Limits {
    final Map<String, Object> words = new LinkedHashMap<>();

    private Limits() {}

    private Limits with(String name, int number) {
        words.put(name, number);
        return this;
    }

    /** Exactly so often. */
    public static Limits exactly(int times) {
        return new Limits().with("times", times);
    }

    /** So often or more. */
    public static Limits atLeast(int times) {
        return new Limits().with("at_least", times);
    }

    /** So often or less. */
    public static Limits atMost(int times) {
        return between(0, times);
    }

    /** Within limits. */
    public static Limits between(int least, int most) {
        return new Limits().with("at_least", least).with("at_most", most);
    }
}
