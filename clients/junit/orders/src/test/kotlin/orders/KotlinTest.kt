package orders

import test.momus.Cluster
import test.momus.MomusCluster
import test.momus.Word.once
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test

/** The same kit from Kotlin. */
@MomusCluster(topics = ["orders:2", "invoices"])
class KotlinTest {
    @Test
    fun `a commit that is refused once is tried again`(cluster: Cluster) {
        cluster.produce("orders", "alice 3")
        val refused = cluster.faults().injectError("TxnOffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", once())
        Orders(cluster.bootstrapServers(), "orders-1").use { it.work(1) }
        assertEquals(1, refused.hits())
        assertEquals(listOf("alice 30"), cluster.consume("invoices", 1).map { it.text() })
    }
}
