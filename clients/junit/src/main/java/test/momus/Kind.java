package test.momus;

import java.util.List;
import java.util.Map;

/** A kind of faults: what it does, and its fields and filters as the control plane describes them. */
public record Kind(String fault, String about, List<Map<String, Object>> fields, List<Map<String, Object>> filters) {}
