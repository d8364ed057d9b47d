import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Apache Kafka's console tools one after the other in one JVM, because a JVM takes a second to start.
 *
 * Reads: count of words, the words (class, arguments), standard input. Writes: exit code, what the tool printed.
 * Numbers are 4 bytes, big endian; texts are UTF-8 behind their length.
 */
public final class Tools {
    private static final class Exited extends Error {
        final int code;

        Exited(int code) {
            super("exit " + code, null, false, false);
            this.code = code;
        }
    }

    private static byte[] read(DataInputStream requests) throws Exception {
        return requests.readNBytes(requests.readInt());
    }

    public static void main(String[] none) throws Exception {
        DataInputStream requests = new DataInputStream(System.in);
        DataOutputStream answers = new DataOutputStream(System.out);
        int[] exitCode = {-1};
        Exit.Procedure exit = (code, message) -> {
            exitCode[0] = exitCode[0] < 0 ? code : exitCode[0]; // the first one: a tool may catch what we throw
            throw new Exited(code);
        };
        Exit.setExitProcedure(exit);
        Exit.setHaltProcedure(exit);
        List<Runnable> hooks = new ArrayList<>(); // the console producer closes itself in one
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        while (true) {
            String[] words;
            try {
                words = new String[requests.readInt()];
            } catch (EOFException end) {
                Runtime.getRuntime().halt(0);
                return;
            }
            for (int i = 0; i < words.length; i++) {
                words[i] = new String(read(requests), StandardCharsets.UTF_8);
            }
            System.setIn(new ByteArrayInputStream(read(requests)));
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            PrintStream print = new PrintStream(printed, true, StandardCharsets.UTF_8);
            System.setOut(print);
            System.setErr(print);
            exitCode[0] = -1;
            String[] arguments = java.util.Arrays.copyOfRange(words, 1, words.length);
            String tool = words[0];
            scala.Console.withOut((java.io.OutputStream) printed, () -> { // some tools are written in Scala
                try {
                    Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
                } catch (InvocationTargetException wrapped) {
                    if (!(wrapped.getCause() instanceof Exited)) {
                        wrapped.getCause().printStackTrace();
                        exitCode[0] = 1;
                    }
                } catch (ReflectiveOperationException failure) {
                    failure.printStackTrace();
                    exitCode[0] = 1;
                }
                return null;
            });
            hooks.forEach(Runnable::run);
            hooks.clear();
            print.flush();
            answers.writeInt(Math.max(exitCode[0], 0));
            answers.writeInt(printed.size());
            printed.writeTo(answers);
            answers.flush();
        }
    }
}
