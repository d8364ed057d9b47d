package test.momus;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What {@code momus explore} is told: for which test a cluster is, and what came of it. */
class ExploredTest {
    private static final byte[] ANSWER = "{\"name\": \"c\", \"bootstrap_servers\": \"127.0.0.1:1\", \"api\": 1, \"unmet\": [], \"lines\": []}"
        .getBytes(StandardCharsets.UTF_8);
    private final List<String> said = Collections.synchronizedList(new ArrayList<>());

    @Test
    void callsSayForWhichTestAClusterIsAndWhatCameOfIt() throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.createContext("/", call -> {
            for (String field : List.of("Momus-Test", "Momus-Test-Failed"))
                if (call.getRequestHeaders().containsKey(field) && !call.getRequestMethod().equals("GET"))
                    said.add(call.getRequestMethod() + " " + call.getRequestURI() + " " + call.getRequestHeaders().getFirst(field));
            call.sendResponseHeaders(200, ANSWER.length);
            call.getResponseBody().write(ANSWER);
            call.close();
        });
        server.start();
        try {
            Momus momus = Momus.connect("127.0.0.1:" + server.getAddress().getPort());
            try (Cluster made = momus.newCluster()) {
                made.fork();
            }
            Cluster named = Control.forTest("OrdersTest.bills [1] a", () -> momus.newCluster());
            Control.afterTest(true, () -> named.close());
        } finally {
            server.stop(0);
        }
        String caller = "ExploredTest.callsSayForWhichTestAClusterIsAndWhatCameOfIt";
        assertEquals(List.of("POST /_admin/clusters " + caller, "POST /_admin/clusters/c/fork " + caller,
            "POST /_admin/clusters OrdersTest.bills%20%5B1%5D%20a", "DELETE /_admin/clusters/c true"), said);
    }
}
