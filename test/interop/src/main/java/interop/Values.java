package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.Date;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

/**
 * Java values as JSON that tells their kind, so that none changes on its way: {@code {"long": "5"}} is
 * not {@code {"int": "5"}}. {@code null} is itself. values.ts has the other half.
 */
final class Values {
  private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

  private Values() {}

  static Object read(JsonNode node) {
    if (node == null || node.isNull()) return null;
    Map.Entry<String, JsonNode> field = node.fields().next();
    JsonNode value = field.getValue();
    return switch (field.getKey()) {
      case "string" -> value.textValue();
      case "boolean" -> value.booleanValue();
      case "byte" -> Byte.valueOf(value.textValue());
      case "short" -> Short.valueOf(value.textValue());
      case "int" -> Integer.valueOf(value.textValue());
      case "long" -> Long.valueOf(value.textValue());
      case "float" -> Float.valueOf(value.textValue());
      case "double" -> Double.valueOf(value.textValue());
      case "bigInteger" -> new BigInteger(value.textValue());
      case "bigDecimal" -> new BigDecimal(value.textValue());
      case "char" -> value.textValue().charAt(0);
      case "bytes" -> Base64.getDecoder().decode(value.textValue());
      case "date" -> new Date(Long.parseLong(value.textValue()));
      case "uuid" -> UUID.fromString(value.textValue());
      case "list" -> readAll(value);
      case "set" -> new LinkedHashSet<>(readAll(value));
      case "map" -> readMap(value, new LinkedHashMap<>());
      case "hashMap" -> readMap(value, new HashMap<>());
      default -> throw new IllegalArgumentException("no kind of value is called " + field.getKey());
    };
  }

  static List<Object> readAll(JsonNode array) {
    List<Object> values = new ArrayList<>();
    for (JsonNode node : array) values.add(read(node));
    return values;
  }

  private static Map<Object, Object> readMap(JsonNode entries, Map<Object, Object> map) {
    for (JsonNode entry : entries) map.put(read(entry.get(0)), read(entry.get(1)));
    return map;
  }

  static JsonNode write(Object value) {
    if (value == null) return JSON.nullNode();
    if (value instanceof Boolean flag) return JSON.objectNode().put("boolean", flag);
    if (value instanceof byte[] bytes) {
      return text("bytes", Base64.getEncoder().encodeToString(bytes));
    }
    if (value instanceof Date date) return text("date", date.getTime());
    if (value instanceof Set<?> set) return JSON.objectNode().set("set", writeAll(set));
    if (value instanceof Collection<?> list) return JSON.objectNode().set("list", writeAll(list));
    if (value instanceof Map<?, ?> map) {
      ArrayNode entries = JSON.arrayNode();
      map.forEach((key, item) -> entries.addArray().add(write(key)).add(write(item)));
      return JSON.objectNode().set("map", entries);
    }
    String kind = KINDS.get(value.getClass());
    return kind == null
        ? text("other", value.getClass().getName() + " " + value)
        : text(kind, value);
  }

  static ArrayNode writeAll(Iterable<?> values) {
    ArrayNode array = JSON.arrayNode();
    for (Object value : values) array.add(write(value));
    return array;
  }

  private static ObjectNode text(String kind, Object value) {
    return JSON.objectNode().put(kind, value.toString());
  }

  private static final Map<Class<?>, String> KINDS =
      Map.ofEntries(
          Map.entry(String.class, "string"),
          Map.entry(Byte.class, "byte"),
          Map.entry(Short.class, "short"),
          Map.entry(Integer.class, "int"),
          Map.entry(Long.class, "long"),
          Map.entry(Float.class, "float"),
          Map.entry(Double.class, "double"),
          Map.entry(BigInteger.class, "bigInteger"),
          Map.entry(BigDecimal.class, "bigDecimal"),
          Map.entry(Character.class, "char"),
          Map.entry(UUID.class, "uuid"));
}
