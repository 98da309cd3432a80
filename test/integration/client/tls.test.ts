import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { redisUrl } from "../../helpers/redis.ts";

test("rediss:// to a port without TLS says so soon", async () => {
  const startedAt = performance.now();
  const url = redisUrl().replace("redis:", "rediss:");
  const line = newLineThatMayFail({ redis: url, transfer: false });
  const offer = line.getDelayedQueue("orders").offer("a", 0);
  await eventually(() => line.errors.length > 0);
  expect(performance.now() - startedAt).toBeLessThan(3000);
  expect(line.errors[0]?.message).toMatch(
    /^cannot reach Redis: no answer to the TLS handshake within 1500 ms; use redis:\/\/ in place/,
  );
  await expect(offer).rejects.toThrow(/TLS handshake/);
  expect(line.errors).toHaveLength(1);
});

test("redis:// to a TLS port says that the connection was closed, and what to try", async () => {
  // It ends a connection that does not begin with a TLS handshake, as Redis does at its TLS port.
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const startedAt = performance.now();
  const line = newLineThatMayFail({ redis: { host: "127.0.0.1", port }, transfer: false });
  line
    .getDelayedQueue("orders")
    .offer("a", 0)
    .catch(() => {});
  await eventually(() => line.errors.length > 0);
  expect(performance.now() - startedAt).toBeLessThan(1000);
  expect(line.errors[0]?.message).toMatch(
    /^cannot reach Redis: the connection was closed before Redis replied; if this is its TLS port, use rediss/,
  );
});
