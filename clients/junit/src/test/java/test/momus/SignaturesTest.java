package test.momus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Type;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Whoever uses the kit names no type of a library that the kit merely works with: another version of it would be another kit. */
class SignaturesTest {
    private static final Pattern NAME = Pattern.compile("[a-z]\\w*(?:\\.[a-z]\\w*)+\\.[A-Z]\\w*");
    private static final Pattern OURS = Pattern.compile("(?:java|test\\.momus)\\..*");
    // Who implements an interface of JUnit or Spring says so; no test calls these.
    private static final Set<String> EXTENSIONS = Set.of("MomusExtension", "SpringContexts", "MomusCluster");

    @Test
    void publicSignaturesNameTypesOfJavaAndOfTheKitAlone() throws Exception {
        List<String> foreign = new ArrayList<>();
        int seen = 0;
        for (Class<?> each : publicTypes()) {
            for (String said : signatures(each)) {
                seen++;
                for (Matcher names = NAME.matcher(said); names.find();)
                    if (!OURS.matcher(names.group()).matches() && !isOfItsRunner(each, names.group()))
                        foreign.add(each.getSimpleName() + ": " + said);
            }
        }
        assertEquals(List.of(), foreign);
        assertTrue(seen > 200, "only " + seen + " signatures were found");
    }

    private static boolean isOfItsRunner(Class<?> type, String name) {
        return EXTENSIONS.contains(type.getSimpleName()) && (name.startsWith("org.junit.") || name.startsWith("org.springframework."));
    }

    private static Set<Class<?>> publicTypes() throws IOException, ClassNotFoundException {
        Path classes = Path.of(Momus.class.getProtectionDomain().getCodeSource().getLocation().getPath());
        Set<Class<?>> found = new TreeSet<>((one, other) -> one.getName().compareTo(other.getName()));
        try (Stream<Path> files = Files.walk(classes)) {
            for (Path file : files.filter(each -> each.toString().endsWith(".class")).toList()) {
                String name = classes.relativize(file).toString().replace(".class", "").replace('/', '.');
                Class<?> type = Class.forName(name, false, SignaturesTest.class.getClassLoader());
                if (isPublic(type.getModifiers()) && !name.endsWith("package-info"))
                    found.add(type);
            }
        }
        return found;
    }

    private static boolean isPublic(int modifiers) {
        return Modifier.isPublic(modifiers) || Modifier.isProtected(modifiers);
    }

    private static List<String> signatures(Class<?> type) {
        List<String> said = new ArrayList<>();
        said.add(type.toGenericString() + " " + type.getGenericSuperclass());
        for (Type each : type.getGenericInterfaces())
            said.add(each.getTypeName());
        for (Method each : type.getDeclaredMethods())
            if (isPublic(each.getModifiers()) && !each.isSynthetic())
                said.add(each.toGenericString());
        for (Constructor<?> each : type.getDeclaredConstructors())
            if (isPublic(each.getModifiers()))
                said.add(each.toGenericString());
        for (Field each : type.getDeclaredFields())
            if (isPublic(each.getModifiers()))
                said.add(each.toGenericString());
        return said;
    }
}
