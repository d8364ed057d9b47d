package test.momus;

/** A call that the momus has refused, and why, or one that was not answered. */
public final class MomusException extends RuntimeException {
    private static final long serialVersionUID = 1;
    private final int status;

    MomusException(String message, int status, Throwable cause) {
        super("momus: " + message, cause);
        this.status = status;
    }

    /** The HTTP status of a refusal; 0: there was no answer. */
    public int status() {
        return status;
    }
}
