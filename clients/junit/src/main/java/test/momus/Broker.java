package test.momus;

import java.util.Map;

/** A virtual broker as it is now: whether it listens, lags, and is paused; name of a listener to its HOST:PORT. */
public record Broker(int id, boolean up, boolean lags, boolean paused, Map<String, String> listeners) {}
