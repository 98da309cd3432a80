package interop;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.msgpack.jackson.dataformat.MessagePackFactory;
import org.redisson.client.codec.ByteArrayCodec;
import org.redisson.client.codec.Codec;
import org.redisson.client.codec.DoubleCodec;
import org.redisson.client.codec.IntegerCodec;
import org.redisson.client.codec.LongCodec;
import org.redisson.client.codec.StringCodec;
import org.redisson.codec.JsonJacksonCodec;
import org.redisson.codec.Kryo5Codec;
import org.redisson.codec.MsgPackJacksonCodec;
import org.redisson.codec.TypedJsonJacksonCodec;

/** Redisson's codecs by the names that the tests use. */
final class Codecs {
  private static final Map<String, Supplier<Codec>> MAKERS =
      Map.of(
          "StringCodec", () -> StringCodec.INSTANCE,
          "LongCodec", () -> LongCodec.INSTANCE,
          "IntegerCodec", () -> IntegerCodec.INSTANCE,
          "DoubleCodec", () -> DoubleCodec.INSTANCE,
          "ByteArrayCodec", () -> ByteArrayCodec.INSTANCE,
          "TypedJsonJacksonCodec", () -> new TypedJsonJacksonCodec(Object.class),
          // Plain MessagePack, without type ids: the recommended partner of Delayline's default.
          "TypedJsonJacksonCodec+MessagePack",
              () -> new TypedJsonJacksonCodec(Object.class, new ObjectMapper(new MessagePackFactory())),
          "JsonJacksonCodec", () -> JsonJacksonCodec.INSTANCE,
          "MsgPackJacksonCodec", MsgPackJacksonCodec::new,
          "Kryo5Codec", Kryo5Codec::new);

  private static final Map<String, Codec> MADE = new ConcurrentHashMap<>();

  private Codecs() {}

  static Codec named(String name) {
    Supplier<Codec> maker = MAKERS.get(name);
    if (maker == null) throw new IllegalArgumentException("no codec is called " + name);
    return MADE.computeIfAbsent(name, unused -> maker.get());
  }
}
