package test.momus;

/** Where a record is. */
public record Place(int partition, long offset) {}
