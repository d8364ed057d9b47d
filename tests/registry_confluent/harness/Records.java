// Makes the two Avro classes that the tests want: java Records.java FOLDER SCHEMA...
import java.io.File;
import java.util.Arrays;
import org.apache.avro.compiler.specific.SpecificCompiler;

public class Records {
  public static void main(String[] words) throws Exception {
    File[] schemas = Arrays.stream(words).skip(1).map(File::new).toArray(File[]::new);
    SpecificCompiler.compileSchema(schemas, new File(words[0]));
  }
}
